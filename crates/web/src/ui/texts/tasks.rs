//! Tasks: the list, one, a new one, and those that failed for good.

use super::texts;

texts!(Tasks {
    // the list
    tasks: "Tarefas" | "Tasks";
    task: "Tarefa" | "Task";
    all: "Todas" | "All";
    many_pending: "Na fila" | "Waiting";
    many_in_progress: "Em andamento" | "In progress";
    many_completed: "Concluídas" | "Completed";
    many_failed: "Falhas" | "Failed";
    many_cancelled: "Canceladas" | "Cancelled";
    one_pending: "Na fila" | "Waiting";
    one_in_progress: "Em andamento" | "In progress";
    one_completed: "Concluída" | "Completed";
    one_failed: "Falhou" | "Failed";
    one_cancelled: "Cancelada" | "Cancelled";
    kind: "Tipo" | "Type";
    step: "Etapa" | "Step";
    progress: "Progresso" | "Progress";
    retries: "Novas tentativas" | "Retries";
    of: "de" | "of";
    age: "Idade" | "Age";
    filter: "Filtrar" | "Filter";
    clear: "Limpar" | "Clear";
    none_yet: "Nenhuma tarefa ainda." | "No task yet.";
    none_yet_next: "Uma extração, a execução da frota e o que você agendar aparecem aqui como tarefas."
        | "An extraction, a run of the fleet and whatever you schedule appear here as tasks.";
    none_match: "Nenhuma tarefa atende a isto." | "No task matches this.";
    none_match_next: "Mude o filtro, ou veja todas." | "Change the filter, or see all of them.";
    dead_letters: "Cartas mortas" | "Dead letters";
    schedules: "Agendamentos" | "Schedules";

    // steps that the tasks themselves name
    step_queued: "Na fila" | "Queued";
    step_started: "Iniciada" | "Started";
    step_completed: "Concluída" | "Completed";
    step_failed: "Falhou" | "Failed";
    step_cancelled: "Cancelada pelo usuário" | "Cancelled by user";
    step_retry: "Nova tentativa" | "Retry";
    step_at: "às" | "at";
    step_fetching: "Buscando páginas" | "Fetching pages";
    step_discovering: "Descobrindo" | "Discovering";

    // one
    facts: "Dados" | "Facts";
    priority: "Prioridade" | "Priority";
    attempts: "Tentativas" | "Attempts";
    updated: "Última mudança" | "Last change";
    duration: "Duração" | "Duration";
    process: "Processo" | "Process";
    silent_process: "sem sinal" | "silent";
    version: "Versão" | "Version";
    input_hash: "Hash da entrada" | "Input hash";
    schedule: "Agendamento" | "Schedule";
    input: "Entrada" | "Input";
    metadata: "Metadados" | "Metadata";
    result: "Resultado" | "Result";
    result_none: "Ainda sem resultado." | "No result yet.";
    cut: "Só o começo é mostrado; o JSON tem o resto." | "Only the beginning is shown; the JSON has the rest.";
    events: "Eventos" | "Events";
    events_none: "Os eventos desta tarefa já foram removidos pela limpeza."
        | "The events of this task were removed by the cleanup.";
    actor: "Quem" | "Who";
    actor_api: "pessoa" | "person";
    actor_worker: "worker" | "worker";
    actor_system: "sistema" | "system";
    raw_json: "JSON" | "JSON";
    as_curl: "Copiar como curl" | "Copy as curl";
    see_extraction: "Ver a extração" | "See the extraction";
    see_fleet: "Ver a frota" | "See the fleet";
    retry: "Tentar de novo" | "Retry";
    cancel: "Cancelar" | "Cancel";
    confirm_cancel: "Cancelar a tarefa. Quem a executa recebe ordem de parar."
        | "Cancel the task. Whoever runs it is told to stop.";
    done_retried: "A tarefa está de volta à fila." | "The task is back in the queue.";
    done_cancelled: "A tarefa foi cancelada." | "The task is cancelled.";
    why_waiting: "Por que espera" | "Why it waits";
    wait_retry: "a próxima tentativa, às" | "its next attempt, at";
    wait_time: "a sua hora:" | "its time:";
    wait_in: "em" | "in";
    wait_nobody: "um processo que execute este tipo: nenhum está vivo agora. Inicie lavra serve, lavra runner ou um worker seu."
        | "a process that runs this type: none is alive now. Start lavra serve, lavra runner or a worker of yours.";
    wait_next: "um executor livre: é a próxima do seu tipo" | "a free runner: it is the next of its type";
    wait_ahead: "a sua vez; à frente dela, deste tipo:" | "its turn; before it, of its type:";
    wait_more_than: "mais de" | "more than";
    wait_stop: "a confirmação de que parou, até as" | "word that it has stopped, until";
    wait_takeover: "outro processo: o que a executava não dá sinal, e ela será retomada em segundos"
        | "another process: the one that ran it is silent, and it will be taken over within seconds";

    // a new one
    new_task: "Nova tarefa" | "New task";
    new_choose: "Escolha um tipo" | "Choose a type";
    new_payload: "Entrada (JSON)" | "Input (JSON)";
    new_payload_hint: "O que o tipo precisa saber. Exemplo para http: {\"url\": \"https://example.org/\"}"
        | "What the type needs to know. For http, for example: {\"url\": \"https://example.org/\"}";
    new_more: "Mais opções" | "More options";
    new_priority_hint: "a maior vai antes; normalmente 1" | "higher goes first; usually 1";
    new_max_retries: "Novas tentativas, no máximo" | "Retries at most";
    new_delay: "Esperar antes (segundos)" | "Wait first (seconds)";
    new_idempotent: "Se já houver uma com o mesmo tipo e entrada, usar aquela"
        | "If there is one with the same type and input, use that one";
    new_create: "Criar tarefa" | "Make the task";
    new_not_json: "A entrada não é JSON" | "The input is not JSON";
    new_not_number: "não é um número que caiba aqui" | "is no number that fits here";
    new_no_types: "Nenhum tipo é conhecido ainda." | "No type is known yet.";
    made: "Tarefa criada." | "The task was made.";
    made_before: "Já existia uma igual: é esta." | "There was one like it: this one.";

    // dead letters
    letters_says: "O que falhou até o fim, ou não pôde ser lido, fica aqui até alguém decidir."
        | "What failed for good, or could not be read, lies here until somebody decides.";
    letters_none: "Nenhuma carta morta." | "No dead letters.";
    letters_none_next: "O que falhar após todas as tentativas aparecerá aqui."
        | "What fails after all its retries will appear here.";
    reason: "Motivo" | "Reason";
    no_task: "nenhuma tarefa" | "no task";
    body: "Corpo da mensagem" | "Body of the message";
    redrive: "Executar de novo" | "Run again";
    drop: "Descartar" | "Drop";
    redrive_all: "Executar todas de novo" | "Run all again";
    confirm_redrive_all: "Executar de novo as tarefas de todas as cartas mortas (até 1.000 por vez)."
        | "Run the tasks of all dead letters again (up to 1,000 at a time).";
    confirm_drop: "Descartar a carta. A tarefa fica como está; a carta não volta."
        | "Drop the letter. Its task stays as it is; the letter does not come back.";
    how_many_letters: "cartas mortas" | "dead letters";
    done_redriven: "de volta à fila" | "back in the queue";
    done_refused: "recusadas" | "refused";
    done_dropped: "Carta descartada." | "The letter is dropped.";
});
