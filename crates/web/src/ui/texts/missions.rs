//! Missions: the list, new ones, and one.

use super::texts;

texts!(Missions {
    // missions
    missions: "Missões" | "Missions";
    bank_title: "Banco de Missões" | "Mission bank";
    state_all: "Todas" | "All";
    state_bank: "Banco" | "Bank";
    state_queued: "Na fila" | "Queued";
    state_scraping: "Extração" | "Scraping";
    state_storing: "Armazenamento" | "Storing";
    state_completed: "Concluídas" | "Completed";
    state_failed: "Falhas" | "Failed";
    state_canceled: "Canceladas" | "Canceled";
    one_bank: "No banco" | "In the bank";
    one_queued: "Na fila" | "Queued";
    one_scraping: "Extração" | "Scraping";
    one_storing: "Armazenamento" | "Storing";
    one_completed: "Concluída" | "Completed";
    one_failed: "Falhou" | "Failed";
    one_canceled: "Cancelada" | "Canceled";
    mission: "Missão" | "Mission";
    days: "Dias" | "Days";
    media: "Mídia" | "Media";
    media_all: "toda" | "all";
    media_video: "vídeo" | "video";
    media_image: "imagem" | "image";
    languages: "Idiomas" | "Languages";
    worker: "Worker" | "Worker";
    proxy: "Proxy" | "Proxy";
    ads: "Anúncios" | "Ads";
    retries: "Novas tentativas" | "Retries";
    waiting: "Espera" | "Waits";
    filters: "Filtros" | "Filters";
    filter_from: "De" | "From";
    filter_to: "Até" | "To";
    filter_clear: "Limpar" | "Clear";
    filter_apply: "Filtrar" | "Filter";
    new_missions: "Novas missões" | "New missions";
    add_to_queue: "Adicionar à fila" | "Add to queue";
    cancel_missions: "Cancelar" | "Cancel";
    retry_missions: "Tentar de novo" | "Retry";
    retry_from_scrape: "Tentar desde a extração" | "Retry from the scrape";
    select_row: "Selecionar" | "Select";
    select_page: "Selecionar as desta página" | "Select those of this page";
    select_matching: "Todas as que atendem aos filtros" | "All that match the filters";
    selected: "selecionadas" | "selected";
    choose_something: "Escolha missões, ou todas as que atendem aos filtros."
        | "Choose missions, or all that match the filters.";
    bank_empty: "O banco está vazio." | "The bank is empty.";
    bank_empty_next: "Crie missões por dias, mídias e idiomas, ou importe um CSV."
        | "Make missions from days, media and languages, or import a CSV file.";
    list_empty: "Nenhuma missão atende a isto." | "No mission matches this.";
    list_empty_next: "Mude os filtros, ou veja todas." | "Change the filters, or see all of them.";
    confirm_queue: "Adicionar à fila" | "Add to the queue";
    confirm_cancel: "Cancelar. Jobs em andamento recebem ordem de parar; isto não se desfaz."
        | "Cancel. Jobs under way are told to stop; this cannot be undone.";
    confirm_retry: "Tentar de novo as que falharam" | "Retry those that failed";
    how_many_mission: "missão" | "mission";
    how_many_missions: "missões" | "missions";
    done_queued: "adicionadas à fila" | "added to the queue";
    done_canceled: "canceladas" | "canceled";
    done_retried: "de volta à fila" | "back in the queue";
    done_refused: "recusadas" | "refused";

    // new missions
    new_title: "Novas missões" | "New missions";
    new_by_range: "Por período" | "By days";
    new_by_file: "De um arquivo CSV" | "From a CSV file";
    new_every: "Uma missão por" | "One mission per";
    every_day: "dia" | "day";
    every_week: "semana" | "week";
    every_month: "mês" | "month";
    every_range: "período inteiro" | "whole range";
    new_languages_hint: "Códigos separados por espaço; uma linha por missão. Ex.: pt na primeira linha, en es na segunda."
        | "Codes separated by spaces; a line per mission. For example pt in the first line, en es in the second.";
    new_queue: "Adicionar à fila agora" | "Add to the queue now";
    new_create: "Criar missões" | "Make missions";
    new_csv: "Texto do CSV" | "CSV text";
    new_csv_hint: "Colunas date_start, date_end, media_type, languages." | "Columns date_start, date_end, media_type, languages.";
    new_csv_file: "Ou um arquivo" | "Or a file";
    new_import: "Importar" | "Import";
    made_added: "criadas" | "made";
    made_known: "já existiam" | "were there already";
    made_queued: "na fila" | "queued";

    // one mission
    timeline: "Linha do tempo" | "Timeline";
    timeline_none: "A linha do tempo começa quando a missão entra na fila."
        | "The timeline begins when the mission enters the queue.";
    phase_session: "Sessão" | "Session";
    phase_scrape: "Extração" | "Scrape";
    phase_write: "Gravação" | "Write";
    attempt: "tentativa" | "attempt";
    outcome_ok: "concluída" | "done";
    outcome_failed: "falhou" | "failed";
    outcome_open: "em andamento" | "under way";
    outcome_ended: "encerrada" | "ended";
    events: "Eventos" | "Events";
    why_waiting: "Por que espera" | "Why it waits";
    facts: "Dados" | "Facts";
    queued_at: "Na fila desde" | "Queued";
    started_at: "Início" | "Started";
    finished_at: "Fim" | "Finished";
    duration: "Duração" | "Duration";
    job: "Job do worker" | "Worker job";
    writer_job: "Job do writer" | "Writer job";
    attempts: "Tentativas" | "Attempts";
    jobs_sent: "Jobs enviados" | "Jobs sent";
    copy_mission: "Copiar como nova" | "Copy as new";
    raw_json: "JSON" | "JSON";
    as_curl: "Copiar como curl" | "Copy as curl";
    mission_copied: "Nova missão criada." | "A new mission was made.";
    at_most: "As 2.000 entradas mais antigas são mostradas; o resto está na auditoria."
        | "The oldest 2,000 entries are shown; the rest is in the audit.";
});
