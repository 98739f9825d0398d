//! Help.

use super::texts;

texts!(Help {
    pages: "As páginas" | "The pages";
    overview: "Se está em execução, o que espera e pelo quê, o que falhou, o ritmo e a previsão."
        | "Whether it is running, what waits and for what, what failed, how fast, and until when.";
    missions: "O banco e a fila. Os números por estado são os filtros; marque missões para adicionar à fila, cancelar ou tentar de novo."
        | "The bank and the queue. The counts by state are the filters; tick missions to queue, cancel or retry them.";
    extractions: "Cada fonte como um mapa de endpoint por mês; cada quadro leva às páginas guardadas."
        | "Each source as a map of endpoint by month; each field leads to the pages that are stored.";
    tasks: "Tudo o que roda por baixo: extrações, execuções da frota, limpeza, com eventos e resultado."
        | "All that runs underneath: extractions, runs of the fleet, cleanup, with events and result.";
    workers: "Quem raspa: o que faz ou espera, em que sessão, atrás de qual proxy, e o desempenho em 7 dias."
        | "Who scrapes: what each does or waits for, in which session, behind which proxy, and how it did in 7 days.";
    proxies: "Quem usa qual, quantas falhas tem, as últimas sessões; os desativados por falhas são reativados aqui."
        | "Who uses which, how many failures it has, its last sessions; those that failed are reactivated here.";
    writers: "Quem grava: qual recebe novos jobs e quantos estão em andamento."
        | "Who stores: which one takes new jobs, and how many are under way.";
    audit: "Tudo o que aconteceu, com filtros, e os quatro relatórios; cada um também como dados."
        | "All that happened, with filters, and the four reports; each as data as well.";
    settings: "Missões por sessão, novas tentativas, chaves e webhooks." | "Missions per session, retries, keys and webhooks.";

    live: "Ao vivo" | "Live";
    live_says: "As páginas se atualizam sozinhas quando algo acontece, sem recarregar. Uma lista sob o ponteiro não muda de lugar: um botão avisa que há novidades. Ao vivo, no alto, pausa e retoma. Sem JavaScript, as páginas recarregam a cada 5 segundos."
        | "Pages refresh themselves when something happens, without reloading. A list under the pointer does not move: a button says that it has changed. Live, at the top, pauses and resumes. Without JavaScript, pages reload every 5 seconds.";
    times: "Horários" | "Times";
    times_says: "Todos os horários são UTC." | "All times are UTC.";

    roles: "Papéis" | "Roles";
    viewer: "ver tudo, mudar nada" | "see everything, change nothing";
    operator: "o mesmo, e operar: missões, execuções, extrações, tarefas" | "the same, and operate: missions, runs, extractions, tasks";
    admin: "o mesmo, e mudar com o que se opera: workers, proxies, writers, ajustes, chaves, webhooks"
        | "the same, and change what is operated with: workers, proxies, writers, settings, keys, webhooks";
    writer: "só o que um worker de tarefas em outra linguagem precisa; não entra nas páginas"
        | "only what a task worker in another language needs; it cannot sign in to the pages";

    more: "Mais" | "More";
    error_codes: "Códigos de erro" | "Error codes";
    error_codes_says: "O que aconteceu, de quem é a culpa, o que o Lavra faz e o que você faz."
        | "What happened, whose fault it is, what Lavra does, and what you do.";
    api: "A API HTTP" | "The HTTP API";
    api_says: "Tudo o que as páginas fazem, descrito em OpenAPI." | "All that the pages do, described as OpenAPI.";

    // error codes
    of_missions: "Códigos das missões" | "Codes of missions";
    of_missions_says: "O código de uma missão que falhou está na missão; o de cada passo, no log. Falhas que contam contra um proxy aumentam o contador dele; a terceira o desativa."
        | "The code of a mission that failed is in the mission, that of each step in the log. What counts against a proxy raises its count; the third failure deactivates it.";
    of_api: "Códigos da API" | "Codes of the API";
    of_api_says: "Cada resposta de erro da API traz um destes códigos, que não mudam." | "Every error answer of the API carries one of these codes, which do not change.";
    what: "O que aconteceu" | "What happened";
    blame: "De quem é a culpa" | "Whose fault";
    lavra: "O que o Lavra faz" | "What Lavra does";
    you: "O que você faz" | "What you do";
    code: "Código" | "Code";
    show_missions: "Missões com este código" | "Missions with this code";
    show_log: "No log" | "In the log";
});
