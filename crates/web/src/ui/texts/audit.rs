//! The audit: the log with its filters, and the four reports.

use super::texts;

texts!(Audit {
    tabs: "Relatórios" | "Reports";
    tab_log: "Log" | "Log";
    tab_timeline: "Linha do tempo" | "Timeline";
    tab_failures: "Falhas" | "Failures";
    tab_workers: "Desempenho" | "Performance";
    tab_proxies: "Proxies" | "Proxies";
    as_json: "JSON" | "JSON";
    as_csv: "CSV" | "CSV";

    // the window
    window: "Período" | "Window";
    since: "Desde (UTC)" | "Since (UTC)";
    until: "Até (UTC)" | "Until (UTC)";
    since_hint: "Vazio: o período ao lado." | "Empty: the window beside it.";
    hour_1: "última hora" | "last hour";
    hour_6: "últimas 6 horas" | "last 6 hours";
    hour_24: "últimas 24 horas" | "last 24 hours";
    hour_72: "últimos 3 dias" | "last 3 days";
    hour_168: "últimos 7 dias" | "last 7 days";
    hour_720: "últimos 30 dias" | "last 30 days";
    show: "Mostrar" | "Show";

    // the log
    log_title: "Log da frota" | "Log of the fleet";
    filters: "Filtros" | "Filters";
    events: "Eventos" | "Events";
    events_hint: "(nenhum marcado: todos)" | "(none ticked: all of them)";
    mission_id: "Id da missão" | "Mission id";
    without_mission: "Só entradas sem missão" | "Only entries without a mission";
    worker: "Worker" | "Worker";
    proxy: "Proxy" | "Proxy";
    clear: "Limpar" | "Clear";
    apply: "Filtrar" | "Filter";
    log_empty: "Nada aconteceu ainda." | "Nothing has happened yet.";
    log_empty_next: "O log começa com a primeira missão que entra na fila." | "The log begins with the first mission that enters the queue.";
    log_none: "Nenhuma entrada atende a isto." | "No entry matches this.";
    log_none_next: "Mude os filtros, ou veja todo o log." | "Change the filters, or see the whole log.";
    log_all: "Todo o log" | "The whole log";

    // the timeline of a mission
    timeline_title: "Linha do tempo de uma missão" | "Timeline of a mission";
    timeline_hint: "Cole o id inteiro, como mis_…; a lista de missões tem todos." | "Paste the whole id, as mis_…; the list of missions has them all.";
    timeline_ask: "Qual missão?" | "Which mission?";
    timeline_open: "Abrir a missão" | "Open the mission";
    timeline_not_found: "Não há missão com este id." | "There is no mission with this id.";
    timeline_none: "Esta missão ainda não tem entradas: está no banco." | "This mission has no entry yet: it is in the bank.";
    timeline_cut: "As primeiras 1.000 entradas são mostradas; as demais estão no log." | "The first 1,000 entries are shown; the others are in the log.";

    // failures
    failures_title: "Missões que falharam" | "Missions that failed";
    failures_none: "Nenhuma missão falhou neste período." | "No mission failed in this window.";
    failed_at: "Falhou em" | "Failed at";
    now_is: "Hoje" | "Now";
    under_way: "Em andamento" | "Under way";
    retries: "Novas tentativas" | "Retries";

    // performance
    workers_title: "Desempenho por worker" | "Performance per worker";
    workers_none: "Nenhum worker raspou neste período." | "No worker scraped in this window.";
    completed: "Concluídas" | "Completed";
    failed: "Falhas" | "Failed";
    success: "Sucesso" | "Success";
    average: "Duração média" | "Average duration";

    // proxies
    proxies_title: "Proxies problemáticos" | "Problematic proxies";
    proxies_none: "Nenhum proxy ainda." | "No proxy yet.";
    host: "Host" | "Host";
    fail_count: "Falhas contadas" | "Counted failures";
    session_failures: "Sessões que falharam" | "Failed sessions";
    rotations: "Trocas" | "Rotations";
    active: "Ativo" | "Active";
    inactive: "Desativado" | "Deactivated";
});
