//! Words of the domain: what is waited for, and what went wrong.

use super::texts;

texts!(Words {
    // what is waited for
    wait_bank: "ser adicionada à fila" | "being added to the queue";
    wait_start: "a execução ser iniciada" | "the run to be started";
    wait_free_worker: "um worker livre" | "a free worker";
    wait_write: "a sua vez no writer" | "its turn at the writer";
    wait_proxy: "um proxy livre" | "a free proxy";
    wait_mission: "uma missão" | "a mission";
    wait_session: "a sessão ficar pronta" | "its session to be ready";
    wait_job: "o job de extração" | "the scrape job";
    wait_job_stop: "o job de extração parar" | "the scrape job to stop";
    wait_session_end: "o fim da sessão" | "the end of its session";
    wait_retry: "a próxima tentativa" | "its next attempt";
    wait_worker: "o worker responder" | "the worker to answer";
    wait_worker_busy: "o worker, que pediu uma pausa" | "the worker, which asked for a pause";
    wait_active_writer: "um writer ativo" | "an active writer";
    wait_writer: "o writer responder" | "the writer to answer";
    wait_writer_busy: "o writer, que pediu uma pausa" | "the writer, which asked for a pause";
    wait_writer_job: "o job do writer" | "the writer job";
    wait_orchestrator: "o orquestrador" | "the orchestrator";
    wait_until: "às" | "at";

    // error codes
    error_100: "a sessão falhou" | "the session failed";
    error_101: "a sessão não ficou pronta a tempo" | "the session was not ready in time";
    error_102: "a sessão travou" | "the session is stuck";
    error_103: "a sessão caiu" | "the session was disconnected";
    error_104: "nenhuma sessão após todas as tentativas" | "no session after all retries";
    error_200: "o job de extração falhou" | "the scrape job failed";
    error_201: "o job de extração foi cancelado por outro" | "the scrape job was cancelled by someone else";
    error_202: "o job de extração demorou demais" | "the scrape job took too long";
    error_203: "a extração falhou após todas as tentativas" | "the scrape failed after all retries";
    error_300: "o writer falhou" | "the writer failed";
    error_301: "o writer recusou a conexão" | "the writer refused the connection";
    error_302: "o writer não respondeu a tempo" | "the writer did not answer in time";
    error_303: "o writer não consegue gravar estes dados" | "the writer cannot store this data as it is";
    error_304: "o writer falhou após a nova tentativa" | "the writer failed after its retry";
    error_400: "o armazenamento falhou" | "the storage failed";
    error_401: "o armazenamento recusou as credenciais" | "the storage refused the credentials";
    error_500: "o pedido foi recusado como inválido" | "the request was refused as wrong";
    error_501: "nenhum proxy livre" | "no proxy is free";
    error_502: "o worker não pode ser alcançado" | "the worker cannot be reached";
});
