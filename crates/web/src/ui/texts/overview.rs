//! The overview.

use super::texts;

texts!(Overview {
    title: "Visão geral" | "Overview";
    run_off: "Parado" | "Stopped";
    run_run: "Em execução" | "Running";
    run_drain: "Drenando" | "Draining";
    run_stop: "Encerrando" | "Stopping";
    run_start: "Iniciar" | "Start";
    run_do_drain: "Drenar" | "Drain";
    run_do_stop: "Parar" | "Stop";
    run_off_says: "O orquestrador não está em execução." | "The orchestrator is not running.";
    run_off_waits: "Há missões na fila e nada as executa: clique em Iniciar."
        | "Missions wait in the queue and nothing runs them: press Start.";
    run_run_says: "O orquestrador está em execução." | "The orchestrator is running.";
    run_drain_says: "Termina o que está em andamento e não pega nada novo."
        | "It finishes what runs and takes nothing new.";
    run_stop_says: "Cancela jobs, devolve missões à fila e fecha sessões."
        | "It cancels jobs, puts missions back into the queue and closes sessions.";
    run_drain_explained: "Drenar: termina o que está em andamento e não pega nada novo."
        | "Drain: finish what runs, take nothing new.";
    run_stop_explained: "Parar: cancela os jobs, devolve as missões à fila e fecha as sessões."
        | "Stop: cancel jobs, put their missions back into the queue, close sessions.";
    run_started: "Execução iniciada." | "The run has started.";
    run_already: "Já está em execução." | "It is running already.";
    run_draining: "Drenando: nada novo começa." | "Draining: nothing new begins.";
    run_stopping: "Encerrando." | "Stopping.";
    state_counts: "Missões por estado" | "Missions by state";
    waits: "O que espera, e pelo quê" | "What waits, and for what";
    waits_none: "Nada espera." | "Nothing waits.";
    waits_for: "Espera por" | "Waits for";
    waits_mission: "missão" | "mission";
    waits_missions: "missões" | "missions";
    waits_worker: "worker" | "worker";
    waits_workers: "workers" | "workers";
    failures: "O que falhou, e por quê" | "What failed, and why";
    failures_none: "Nenhuma falha nas últimas 24 horas." | "No failure in the last 24 hours.";
    failures_window: "Últimas 24 horas" | "Last 24 hours";
    pace: "Ritmo" | "Pace";
    pace_window: "Últimas 6 horas, por 10 minutos" | "Last 6 hours, by 10 minutes";
    pace_completed: "concluídas" | "completed";
    pace_failed: "falhas" | "failed";
    pace_none: "Nada terminou nas últimas 6 horas." | "Nothing has ended in the last 6 hours.";
    pace_per_hour: "missões por hora" | "missions per hour";
    pace_ads: "anúncios na última hora" | "ads in the last hour";
    eta: "Previsão" | "Estimate";
    eta_none: "Nada na fila." | "Nothing is queued.";
    eta_unknown: "Sem ritmo ainda: nada foi concluído na última hora."
        | "No pace yet: nothing was completed in the last hour.";
    eta_at: "A fila termina por volta de" | "The queue ends at about";
    eta_in: "em" | "in";
    oldest_waits: "A mais antiga espera há" | "The oldest has waited for";
    fleet: "Frota" | "Fleet";
    fleet_busy: "ocupados" | "busy";
    fleet_of: "de" | "of";
    fleet_active: "ativos" | "active";
    fleet_in_use: "em uso" | "in use";
    fleet_failing: "desativados por falhas" | "deactivated by failures";
    latest: "Últimos eventos" | "Latest events";
    latest_none: "Nada aconteceu ainda." | "Nothing has happened yet.";
    select_missions: "Selecionar Missões" | "Select missions";
    first_steps: "Primeiros passos" | "First steps";
    first_steps_says: "Para concluir a primeira missão faltam:"
        | "Until the first mission is completed, these are missing:";
    step_worker: "Um worker: o programa que abre sessões e raspa" | "A worker: the program that opens sessions and scrapes";
    step_proxy: "Um proxy por worker, e mais um para a troca" | "A proxy per worker, and one more to change to";
    step_writer: "Um writer: o programa que grava no banco" | "A writer: the program that stores";
    step_missions: "Missões no banco, e na fila" | "Missions in the bank, and in the queue";
    step_start: "Iniciar a execução" | "Start the run";
    tasks_running: "Tarefas em andamento" | "Tasks in progress";
    tasks_none_running: "Nenhuma tarefa em andamento." | "No task is in progress.";
});
