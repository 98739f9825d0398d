//! What stands on every page.

use super::texts;

texts!(Common {
    // every page
    skip: "Ir para o conteúdo" | "Skip to content";
    sections: "Seções" | "Sections";
    nav_overview: "Visão geral" | "Overview";
    nav_missions: "Missões" | "Missions";
    nav_workers: "Workers" | "Workers";
    nav_proxies: "Proxies" | "Proxies";
    nav_writers: "Writers" | "Writers";
    nav_extractions: "Extrações" | "Extractions";
    nav_tasks: "Tarefas" | "Tasks";
    nav_audit: "Auditoria" | "Audit";
    nav_settings: "Configurações" | "Settings";
    nav_help: "Ajuda" | "Help";
    group_work: "Trabalho" | "Work";
    group_fleet: "Frota" | "Fleet";
    group_system: "Sistema" | "System";
    search: "Buscar missões" | "Search missions";
    search_hint: "id, código ou texto do erro" | "id, error code or text";
    live_on: "Ao vivo" | "Live";
    live_paused: "Em pausa" | "Paused";
    live_lost: "Reconectando…" | "Reconnecting…";
    live_static: "Atualiza a cada 5 s" | "Refreshes every 5 s";
    live_toggle: "Pausar ou retomar a atualização" | "Pause or resume updates";
    held_rows: "Novidades fora desta lista: mostrar" | "The list has changed: show";
    theme: "Tema" | "Theme";
    theme_auto: "Do sistema" | "System";
    theme_light: "Claro" | "Light";
    theme_dark: "Escuro" | "Dark";
    language: "Idioma" | "Language";
    sign_in: "Entrar" | "Sign in";
    sign_out: "Sair" | "Sign out";
    signed_in_as: "Chave" | "Key";
    keyboard: "Teclado" | "Keyboard";
    close: "Fechar" | "Close";
    confirm_title: "Tem certeza?" | "Are you sure?";
    go_back: "Voltar" | "Back";
    yes_do_it: "Sim, continuar" | "Yes, go on";
    copied: "Copiado" | "Copied";
    copy: "Copiar" | "Copy";
    all: "todos" | "all";
    all_f: "todas" | "all";
    never: "nunca" | "never";
    now: "agora" | "now";
    newest: "Mais recentes" | "Newest";
    older: "Mais antigas" | "Older";
    pages: "Páginas" | "Pages";
    first_page: "Início" | "First";
    next_page: "Próxima" | "Next";
    actions: "Ações" | "Actions";
    details: "Detalhes" | "Details";
    save: "Salvar" | "Save";
    cancel: "Cancelar" | "Cancel";
    remove: "Remover" | "Remove";
    edit: "Editar" | "Edit";
    add: "Adicionar" | "Add";
    yes: "sim" | "yes";
    no: "não" | "no";
    name: "Nome" | "Name";
    status: "Estado" | "Status";
    updated: "Atualizado" | "Updated";
    created: "Criada" | "Created";
    when: "Quando" | "When";
    mission: "Missão" | "Mission";
    what: "O quê" | "What";
    count: "Quantas" | "How many";
    since: "Desde" | "Since";
    error: "Erro" | "Error";
    not_allowed_here: "Sua chave só permite ver." | "Your key may only look.";

    // keyboard help
    key_search: "ir para a busca" | "go to the search";
    key_help: "esta ajuda" | "this help";
    key_rows: "linha seguinte ou anterior" | "next or previous row";
    key_open: "abrir a linha" | "open the row";
    key_select: "selecionar a linha" | "select the row";
    key_pause: "pausar ou retomar" | "pause or resume";
    key_go: "depois o (visão geral), m (missões), e (extrações), t (tarefas), w (workers), p (proxies), a (auditoria), s (configurações)"
        | "then o (overview), m (missions), e (extractions), t (tasks), w (workers), p (proxies), a (audit), s (settings)";
    key_close: "fechar" | "close";

    // refusals
    refused_title: "Não foi possível" | "That was not possible";
    not_found_title: "Não há nada aqui" | "There is nothing here";
    not_found_says: "O endereço não existe, ou o que havia nele foi removido."
        | "The address does not exist, or what was there is gone.";
    trouble_title: "Algo deu errado" | "Something went wrong";
    trouble_says: "O banco de dados não respondeu. Esta página tenta de novo sozinha."
        | "The database did not answer. This page tries again by itself.";
    home: "Ir para a visão geral" | "Go to the overview";
});
