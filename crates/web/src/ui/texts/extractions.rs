//! Extractions: the sources, the heat map of one, a task of its plan, its pages, and a new run.

use super::texts;

texts!(Extractions {
    // sources
    extractions: "Extrações" | "Extractions";
    sources_says: "Cada fonte tem um plano: uma linha por endpoint e mês, até tudo estar completo."
        | "Each source has a plan: a row per endpoint and month, until all of it is complete.";
    built_in: "incluída" | "built in";
    own_source: "definida por você" | "defined by you";
    untouched: "Nada extraído ainda" | "Nothing extracted yet";
    endpoints: "Endpoints" | "Endpoints";
    endpoint: "Endpoint" | "Endpoint";
    endpoints_count: "endpoints" | "endpoints";
    filters: "Filtros" | "Filters";
    pages: "Páginas" | "Pages";
    records: "Registros" | "Records";
    size: "Tamanho" | "Size";
    complete_of: "completas de" | "complete of";
    new_extraction: "Nova extração" | "New extraction";

    // states of a task of the plan
    one_pending: "Pendente" | "Pending";
    one_discovering: "Descobrindo" | "Discovering";
    one_fetching: "Buscando" | "Fetching";
    one_partial: "Parcial" | "Partial";
    one_complete: "Completa" | "Complete";
    one_failed: "Falhou" | "Failed";
    many_all: "Todas" | "All";
    many_pending: "Pendentes" | "Pending";
    many_discovering: "Descobrindo" | "Discovering";
    many_fetching: "Buscando" | "Fetching";
    many_partial: "Parciais" | "Partial";
    many_complete: "Completas" | "Complete";
    many_failed: "Falhas" | "Failed";

    // the heat map
    grid: "Endpoint × mês" | "Endpoint × month";
    grid_says: "Cada célula é um mês de um endpoint; abra uma para ver as suas páginas."
        | "Each cell is a month of an endpoint; open one to see its pages.";
    filter_endpoint: "Endpoint contém" | "Endpoint contains";
    from: "De" | "From";
    to: "Até" | "To";
    filter: "Filtrar" | "Filter";
    clear: "Limpar" | "Clear";
    nothing_matches: "Nenhum endpoint atende a isto." | "No endpoint matches this.";
    nothing_matches_next: "Mude os filtros, ou veja todos." | "Change the filters, or see all of them.";
    nothing_yet: "Nada desta fonte foi extraído aqui." | "Nothing of this source was extracted here.";
    nothing_yet_next: "Escolha os meses e os endpoints; o plano mostra o custo antes de começar."
        | "Choose months and endpoints; the plan shows the cost before anything begins.";
    summary: "Resumo" | "Summary";
    cell_of: "de" | "of";
    cell_pages: "páginas" | "pages";
    cell_records: "registros" | "records";
    running: "Em andamento" | "Under way";
    running_none: "Nada em andamento." | "Nothing is under way.";
    recent: "Últimas execuções" | "Latest runs";
    kind_extract: "Extração" | "Extraction";
    kind_audit: "Auditoria" | "Audit";
    kind_export: "Exportação" | "Export";
    resume: "Retomar o que falta" | "Take up what is missing";

    // audit and export
    audit: "Auditar" | "Audit";
    audit_says: "Confere o que está guardado com o que foi prometido."
        | "Checks what is stored against what was promised.";
    audit_source: "Pedir de novo os totais à fonte" | "Ask the source for its totals again";
    audit_repair: "Marcar o que está danificado para ser buscado de novo"
        | "Mark what is damaged to be fetched again";
    export: "Exportar" | "Export";
    export_says: "Grava os registros em arquivos, um por endpoint e mês."
        | "Writes the records to files, one per endpoint and month.";
    export_format: "Formato" | "Format";
    export_out: "Nome da pasta" | "Name of the folder";
    export_out_hint: "abaixo dos artefatos do servidor" | "below the server's artefacts";
    export_partial: "Também o que ainda não está completo" | "Also what is not complete yet";
    scope_hint: "Vazio: tudo." | "Empty: all of it.";
    more: "Auditar ou exportar" | "Audit or export";

    // one task of the plan
    facts: "Dados" | "Facts";
    verdict_exact: "exato: os registros somam o total anunciado"
        | "exact: the records add up to the announced total";
    verdict_short: "faltam registros:" | "short by records:";
    verdict_drifted: "o total mudou durante a busca; diferença:" | "the total drifted while fetching; by:";
    verdict_none: "ainda sem veredito" | "no verdict yet";
    announced: "Total anunciado" | "Announced total";
    announced_unknown: "ainda não perguntado" | "not asked for yet";
    stored: "Guardado" | "Stored";
    missing: "Páginas que faltam" | "Missing pages";
    missing_none: "Nenhuma." | "None.";
    missing_more: "e mais" | "and more";
    windows: "Janelas" | "Windows";
    window: "Janela" | "Window";
    days: "Dias" | "Days";
    first_page: "Primeira página" | "First page";
    generation: "Geração" | "Generation";
    discoveries: "Descobertas" | "Discoveries";
    attempts: "Descobertas que falharam" | "Failed discoveries";
    failing_since: "Falha desde" | "Failing since";
    discovered_at: "Total perguntado em" | "Total asked for at";
    updated: "Última mudança" | "Last change";
    next_attempt: "Próxima tentativa" | "Next attempt";
    is_final: "Mês encerrado quando buscado" | "Month was over when fetched";
    retry_this: "Retomar" | "Retry this";
    refresh_this: "Buscar de novo" | "Refresh it";
    confirm_refresh: "Buscar de novo todas as páginas deste mês, também as que já estão guardadas."
        | "Fetch all pages of this month again, also those that are stored.";
    page: "Página" | "Page";
    outcome: "Estado" | "State";
    outcome_data: "guardada" | "stored";
    outcome_empty: "vazia" | "empty";
    outcome_failed: "falhou" | "failed";
    outcome_missing: "falta" | "missing";
    outcome_stale: "será buscada de novo" | "to be fetched again";
    fetched_at: "Buscada em" | "Fetched at";
    hash: "Hash do conteúdo" | "Content hash";
    only_missing: "Só as que faltam" | "Only missing ones";
    all_pages: "Todas as páginas" | "All pages";
    pages_none: "Nenhuma página ainda." | "No page yet.";
    pages_first: "Primeiras" | "First";
    pages_next: "Seguintes" | "Next";

    // the body of a page
    body: "Resposta da fonte" | "What the source answered";
    body_cut: "São mostrados os primeiros 256 KiB." | "The first 256 KiB are shown.";
    body_none: "A resposta desta página não está guardada." | "The answer of this page is not stored.";
    body_hash: "SHA-256 do corpo" | "SHA-256 of the body";
    page_before: "Página anterior" | "Page before";
    page_after: "Página seguinte" | "Page after";

    // a new run
    new_choose: "Escolha a fonte" | "Choose the source";
    new_other: "Outra fonte" | "Another source";
    new_definition: "Definição da fonte (TOML)" | "Definition of the source (TOML)";
    new_definition_hint: "O texto de um arquivo de fonte, como em docs/sources.md."
        | "The text of a source file, as in docs/sources.md.";
    new_month_hint: "como 2024-01" | "as 2024-01";
    new_endpoints_hint: "Nenhum marcado: todos os usuais." | "None ticked: all usual ones.";
    new_opt_in: "só a pedido" | "on request";
    new_refresh: "Buscar de novo também o que está completo" | "Fetch again also what is complete";
    new_more: "Mais opções" | "More options";
    new_base_url: "Outro endereço da mesma API" | "Another address of the same API";
    new_base_url_hint: "Vazio: o da fonte." | "Empty: that of the source.";
    new_plan: "Planejar" | "Plan";
    new_plan_again: "Planejar de novo" | "Plan again";
    new_start: "Iniciar" | "Start";
    plan: "O plano" | "The plan";
    plan_tasks: "tarefas" | "tasks";
    plan_new: "novas" | "new";
    plan_requests: "pedidos à fonte, no mínimo" | "requests to the source, at least";
    plan_at_once: "ao mesmo tempo, no máximo" | "at once, at most";
    plan_says: "Onde o total ainda não é conhecido, conta-se o pedido que o pergunta. O que está completo não custa nada."
        | "Where the total is not known yet, the request that asks for it is counted. What is complete costs nothing.";
    plan_nothing: "Não há nada a fazer: tudo o que isto pede está completo."
        | "There is nothing to do: all that this asks for is complete.";
    plan_months: "Meses" | "Months";
    plan_complete: "Completas" | "Complete";
    plan_cost: "Pedidos" | "Requests";
    done_started: "A extração foi iniciada." | "The extraction has started.";
    done_audit: "A auditoria foi iniciada." | "The audit has started.";
    done_export: "A exportação foi iniciada." | "The export has started.";
    needs_definition: "Esta fonte não vem com o programa, e a execução que a definiu já foi removida: inicie uma nova extração com a definição."
        | "This source does not come with the program, and the run that defined it was removed: start a new extraction with its definition.";
    uses_address: "Endereço da última execução:" | "Address of the last run:";
});
