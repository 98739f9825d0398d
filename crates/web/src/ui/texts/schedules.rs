//! Tasks that are made by the clock.

use super::texts;

texts!(Schedules {
    schedules: "Agendamentos" | "Schedules";
    says: "Cada agendamento cria uma tarefa na sua hora. As horas são em UTC."
        | "Each schedule makes a task when its time comes. Times are in UTC.";
    none: "Nenhum agendamento." | "No schedule.";
    none_next: "Agende, por exemplo, uma extração por noite." | "Schedule an extraction every night, for example.";
    new: "Novo agendamento" | "New schedule";
    edit: "Editar agendamento" | "Edit schedule";
    cron: "Cron" | "Cron";
    cron_hint: "minuto hora dia mês dia-da-semana, em UTC. Ex.: 17 3 * * * é todo dia às 03:17."
        | "minute hour day month weekday, in UTC. For example 17 3 * * * is every day at 03:17.";
    when: "Quando" | "When";
    next: "Próximas vezes" | "Next times";
    last_task: "Última tarefa" | "Last task";
    payload: "Entrada (JSON)" | "Input (JSON)";
    enabled: "Ativo" | "Enabled";
    disabled: "Inativo" | "Disabled";
    is_enabled: "Ativo: cria tarefas na sua hora" | "Enabled: makes tasks when its time comes";
    enable: "Ativar" | "Enable";
    disable: "Desativar" | "Disable";
    run_now: "Executar agora" | "Run now";
    name_hint: "Uma letra, depois letras, dígitos, _ . -" | "A letter, then letters, digits, _ . -";
    confirm_remove: "Remover o agendamento. As tarefas que ele criou ficam."
        | "Remove the schedule. Tasks that it has made stay.";
    done_saved: "Agendamento salvo." | "The schedule is saved.";
    done_enabled: "Agendamento ativado." | "The schedule is enabled.";
    done_disabled: "Agendamento desativado." | "The schedule is disabled.";
    done_removed: "Agendamento removido." | "The schedule is removed.";
    done_run: "Tarefa criada a partir do agendamento." | "A task was made from the schedule.";
});
