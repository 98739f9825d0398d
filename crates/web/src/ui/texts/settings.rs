//! Settings.

use super::texts;

texts!(Settings {
    adjustable: "Ajustes da frota" | "Settings of the fleet";
    adjustable_says: "Valem para todos os processos, a partir do próximo passo de cada missão; nada precisa ser reiniciado."
        | "They hold for all processes from the next step of each mission on; nothing needs a restart.";
    session_limit: "Missões por sessão" | "Missions per session";
    session_limit_says: "Depois de tantas missões a sessão é fechada e o worker troca de proxy. De 1 a 1.000."
        | "After so many missions the session is closed and the worker changes its proxy. From 1 to 1,000.";
    max_retries: "Novas tentativas por fase" | "Retries of a phase";
    max_retries_says: "Quantas vezes sessão e extração são tentadas de novo antes de a missão falhar. O writer tem sempre uma. De 0 a 20."
        | "How often session and scrape are tried again before the mission fails. The writer always has one. From 0 to 20.";
    proxy_failures: "Falhas que desativam um proxy" | "Failures that deactivate a proxy";
    proxy_failures_says: "Contadas no total, ou só as seguidas: uma sessão boa zera a conta."
        | "Counted in total, or only in a row: one good session clears the count.";
    failures_total: "no total" | "in total";
    failures_consecutive: "seguidas" | "in a row";
    saved: "Salvo." | "Saved.";
    not_saved: "Não foi salvo:" | "It was not saved:";
    wrong_limit: "missões por sessão é um número de 1 a 1.000" | "missions per session is a number from 1 to 1,000";
    wrong_retries: "novas tentativas é um número de 0 a 20" | "retries is a number from 0 to 20";
    wrong_failures: "as falhas são contadas no total ou seguidas" | "failures are counted in total or in a row";
    read_only: "Sua chave permite ver, não mudar." | "Your key may look at them, not change them.";

    people: "Acesso e avisos" | "Access and notices";
    keys: "Chaves de API" | "API keys";
    keys_says: "Quem pode entrar e chamar, e o que pode fazer." | "Who may sign in and call, and what they may do.";
    webhooks: "Webhooks" | "Webhooks";
    webhooks_says: "Para onde avisar quando algo falha ou termina." | "Where to tell when something fails or ends.";

    timing: "Parâmetros fixos" | "Fixed parameters";
    timing_says: "Vêm de lavra.toml e valem para este processo até que seja reiniciado."
        | "They come from lavra.toml and hold for this process until it is restarted.";
    parameter: "Parâmetro" | "Parameter";
    value: "Valor" | "Value";
    meaning: "Significado" | "Meaning";
    timeout_session: "uma sessão que não fica pronta até aqui falhou (ERROR101)" | "a session that is not ready by then has failed (ERROR101)";
    timeout_job: "um job de extração que não termina até aqui é cancelado (ERROR202)" | "a scrape job that is not done by then is cancelled (ERROR202)";
    polling_session: "entre consultas a uma sessão" | "between looks at a session";
    polling_job: "entre consultas a um job de extração ou do writer" | "between looks at a scrape or writer job";
    polling_queue: "entre buscas por trabalho que ninguém anunciou" | "between looks for work that nobody announced";
    max_proxy_failures: "tantas falhas desativam um proxy" | "so many failures deactivate a proxy";
    close_patience: "quanto se espera pelo fim de uma sessão" | "how long the end of a session is waited for";
    stop_patience: "quanto tem um job que recebeu ordem de parar" | "how long a job that was told to stop has";
    worker_patience: "um worker que não responde por tanto tempo perde a missão (ERROR502)" | "a worker that does not answer for this long loses its mission (ERROR502)";
    writer_silence: "um job do writer que não avança por tanto tempo falhou (ERROR302)" | "a writer job that does not move for this long has failed (ERROR302)";
    backoff: "espera antes de tentar de novo um worker ou writer que falhou: a primeira, dobrada até a última" | "the wait before a worker or writer that failed is tried again: the first, doubled up to the last";
    progress_every: "no máximo uma entrada de progresso por job neste tempo" | "at most one entry of progress per job in this time";
    heartbeat: "entre sinais de vida de um orquestrador" | "between renewals of an orchestrator's row";
    stale: "um orquestrador sem sinal por tanto tempo está morto" | "an orchestrator without a renewal for this long is dead";
    call: "quanto pode durar uma chamada de API" | "how long one call of an API may take";
    test_every: "entre testes de workers, proxies e writers ativos" | "between tests of all workers, proxies and writers that are active";
});
