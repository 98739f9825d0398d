//! Workers, proxies and writers.

use super::texts;

texts!(Things {
    // what all of them have
    add_worker: "Adicionar worker" | "Add a worker";
    add_proxy: "Adicionar proxy" | "Add a proxy";
    add_writer: "Adicionar writer" | "Add a writer";
    edit_worker: "Editar worker" | "Edit the worker";
    edit_proxy: "Editar proxy" | "Edit the proxy";
    edit_writer: "Editar writer" | "Edit the writer";
    proxy: "Proxy" | "Proxy";
    by_state: "Por estado" | "By state";
    all: "Todos" | "All";
    inactive: "Desativado" | "Deactivated";
    inactive_many: "Desativados" | "Deactivated";
    test: "Testar" | "Test";
    activate: "Ativar" | "Activate";
    reactivate: "Reativar" | "Reactivate";
    deactivate: "Desativar" | "Deactivate";
    last_test: "Último teste" | "Last test";
    test_ok: "responde" | "answers";
    test_failed: "não responde" | "does not answer";
    never_tested: "nunca testado" | "never tested";
    did_answer: "respondeu" | "answered";
    did_not_answer: "não respondeu" | "did not answer";
    no_answer_in_time: "sem resposta em 20 s" | "no answer within 20 s";
    did_add: "Adicionado:" | "Added:";
    did_save: "Salvo:" | "Saved:";
    did_activate: "Ativado:" | "Activated:";
    did_deactivate: "Desativado:" | "Deactivated:";
    did_remove: "Removido:" | "Removed:";
    confirm_remove: "Remover. A credencial guardada é apagada; isto não se desfaz."
        | "Remove it. Its stored credential is erased; this cannot be undone.";
    none_in_state: "Nenhum neste estado." | "None in this state.";
    none_in_state_next: "Veja todos, ou escolha outro estado." | "See all of them, or choose another state.";
    last_days: "Últimos 7 dias" | "Last 7 days";
    completed_one: "concluída" | "completed";
    completed: "concluídas" | "completed";
    failed_one: "falha" | "failed";
    failed: "falhas" | "failed";
    average: "média" | "average";
    no_work_yet: "nada nestes dias" | "nothing in these days";

    // workers
    workers_empty: "Nenhum worker ainda." | "No worker yet.";
    workers_empty_next: "Um worker é o programa que abre sessões atrás de um proxy e raspa. Adicione o endereço de um, ou inicie o de referência com lavra worker."
        | "A worker is the program that opens sessions behind a proxy and scrapes. Add the address of one, or start the reference one with lavra worker.";
    status_idle: "Sem sessão" | "Idle";
    status_initializing: "Abrindo sessão" | "Opening a session";
    status_ready: "Pronto" | "Ready";
    status_scraping: "Raspando" | "Scraping";
    status_error: "Erro" | "Error";
    many_idle: "Sem sessão" | "Idle";
    many_initializing: "Abrindo sessão" | "Opening a session";
    many_ready: "Prontos" | "Ready";
    many_scraping: "Raspando" | "Scraping";
    many_error: "Em erro" | "In error";
    leaving: "Termina o que faz e então para" | "Finishes what it does, then stops";
    waits: "Espera" | "Waits for";
    until: "às" | "at";
    mission: "Missão" | "Mission";
    session: "Sessão" | "Session";
    session_of: "de" | "of";
    session_missions: "missões nesta sessão" | "missions in this session";
    no_domain: "Sem domínio de storage: não pode ser ativado" | "Without a storage domain it cannot be activated";
    facts: "Dados" | "Facts";
    address: "Endereço" | "Address";
    storage_domain: "Domínio de storage" | "Storage domain";
    session_since: "Sessão desde" | "Session since";
    session_errors: "Falhas seguidas de sessão" | "Session failures in a row";
    unreachable_since: "Inalcançável desde" | "Unreachable since";
    added_at: "Adicionado" | "Added";
    changed_at: "Mudou" | "Changed";
    last_missions: "Últimas missões" | "Last missions";
    last_missions_none: "Este worker ainda não teve missões." | "This worker has had no mission yet.";
    its_log: "Eventos" | "Events";
    its_log_none: "Nada aconteceu com este worker ainda." | "Nothing has happened to this worker yet.";
    all_its_missions: "todas" | "all of them";
    all_its_log: "no log" | "in the log";
    performance: "Desempenho" | "Performance";

    // proxies
    proxies_empty: "Nenhum proxy ainda." | "No proxy yet.";
    proxies_empty_next: "Cada sessão usa um proxy livre, e a troca precisa de mais um: adicione um por worker e um a mais."
        | "Every session takes a free proxy, and the change needs one more: add one per worker, and one besides.";
    free: "Livre" | "Free";
    in_use: "Em uso" | "In use";
    failed_out: "Desativado por falhas" | "Deactivated by failures";
    many_free: "Livres" | "Free";
    many_in_use: "Em uso" | "In use";
    many_failed_out: "Por falhas" | "By failures";
    used_by: "por" | "by";
    user: "Usuário" | "User";
    failures: "Falhas" | "Failures";
    failures_of: "de" | "of";
    last_results: "Últimas sessões" | "Last sessions";
    no_results: "nenhuma ainda" | "none yet";
    good_of: "boas de" | "good of";
    last_used: "Último uso" | "Last used";
    one_missing: "Todos os proxies ativos estão em uso: a próxima sessão espera."
        | "All active proxies are in use: the next session waits.";

    // writers
    writers_empty: "Nenhum writer ainda." | "No writer yet.";
    writers_empty_next: "Um writer é o programa que grava no banco o que foi raspado. Adicione o endereço de um, ou inicie o de referência com lavra writer."
        | "A writer is the program that stores what was scraped. Add the address of one, or start the reference one with lavra writer.";
    chosen: "Recebe os novos jobs" | "Takes new jobs";
    in_reserve: "Reserva" | "In reserve";
    chosen_says: "O writer ativo mais antigo recebe os novos jobs; os outros ficam de reserva."
        | "The oldest active writer takes new jobs; the others are in reserve.";
    jobs: "Jobs em andamento" | "Jobs under way";
    last_day: "Últimas 24 horas" | "Last 24 hours";

    // forms
    field_url: "URL" | "URL";
    field_url_hint: "Com http:// ou https://, sem credenciais." | "With http:// or https://, without credentials.";
    field_domain_hint: "Onde ficam os resultados, como storage.exemplo.com. Sem ele o worker fica desativado."
        | "Where the results are, as storage.example.com. Without it the worker stays deactivated.";
    field_key: "Chave de API" | "API key";
    field_key_hint: "É guardada cifrada e nunca mais mostrada." | "It is stored encrypted and never shown again.";
    field_password: "Senha" | "Password";
    field_keep_hint: "Deixe em branco para manter a que está guardada." | "Leave it empty to keep the one that is stored.";
    field_host: "Host" | "Host";
    field_host_hint: "Como proxy.exemplo.com ou socks5://10.0.0.7; a porta fica à parte."
        | "As proxy.example.com or socks5://10.0.0.7; the port is apart.";
    field_port: "Porta" | "Port";
    field_port_hint: "De 1 a 65535." | "From 1 to 65535.";
    optional: "opcional" | "optional";
    wrong_port: "A porta é um número de 1 a 65535." | "The port is a number from 1 to 65535.";
    wrong_empty: "não pode ser esvaziado: remova e adicione de novo." | "cannot be emptied: remove it and add it again.";
    not_saved: "Não foi salvo:" | "It was not saved:";
});
