//! Webhooks.

use super::texts;

texts!(Webhooks {
    title: "Webhooks" | "Webhooks";
    says: "Para onde o Lavra avisa quando algo falha ou termina: um POST assinado, repetido até ser aceito."
        | "Where Lavra tells when something fails or ends: a signed POST, repeated until it is taken.";
    add: "Adicionar webhook" | "Add a webhook";
    edit: "Editar webhook" | "Edit the webhook";
    empty: "Nenhum webhook ainda." | "No webhook yet.";
    empty_next: "Adicione o endereço que deve ser avisado; um teste mostra se ele recebe." | "Add the address that is to be told; a test shows whether it takes it.";
    address: "Endereço" | "Address";
    events: "Avisa de" | "Tells of";
    events_hint: "(nenhum marcado: todos)" | "(none ticked: all of them)";
    last_result: "Último aviso" | "Last notice";
    taken: "aceito" | "taken";
    failed: "recusado" | "refused";
    nothing_sent: "nenhum ainda" | "none yet";
    active: "Ativo" | "Active";
    inactive: "Desativado" | "Deactivated";
    test: "Testar" | "Test";
    activate: "Ativar" | "Activate";
    deactivate: "Desativar" | "Deactivate";
    name_hint: "Sem / e sem :." | "Without / and without :.";
    url_hint: "http ou https. Depois só o host é mostrado: o resto costuma ser um segredo." | "http or https. Later only the host is shown: the rest often is a secret.";
    url_keep: "Deixe em branco para manter o endereço." | "Leave it empty to keep the address.";
    secret: "Segredo" | "Secret";
    secret_hint: "Assina cada aviso: 16 a 200 caracteres. Em branco: um novo é criado e mostrado uma vez." | "Signs each notice: 16 to 200 characters. Empty: a new one is made and shown once.";
    secret_keep: "Deixe em branco para manter o segredo." | "Leave it empty to keep the secret.";
    optional: "opcional" | "optional";
    topic_mission_failed: "uma missão falhou" | "a mission failed";
    topic_pool_exhausted: "não há proxy livre" | "no proxy is free";
    topic_extraction_complete: "uma extração terminou completa" | "an extraction is complete";
    topic_extraction_short: "uma extração terminou incompleta" | "an extraction ended short";
    topic_task_dead_lettered: "uma tarefa falhou de vez" | "a task failed for good";
    did_add: "Adicionado:" | "Added:";
    did_save: "Salvo:" | "Saved:";
    did_activate: "Ativado:" | "Activated:";
    did_deactivate: "Desativado; avisos que esperam não serão enviados:" | "Deactivated; notices that wait are not sent:";
    did_remove: "Removido:" | "Removed:";
    did_take: "recebeu o teste" | "took the test";
    did_not_take: "não recebeu o teste" | "did not take the test";
    not_saved: "Não foi salvo:" | "It was not saved:";
    confirm_remove: "Remover. O endereço e o segredo são apagados, e avisos que esperam não serão enviados; isto não se desfaz."
        | "Remove it. Its address and its secret are erased, and notices that wait are not sent; this cannot be undone.";
    made_heading: "Webhook adicionado" | "The webhook was added";
    made_says: "Copie o segredo agora e dê-o a quem recebe: ele não será mostrado de novo." | "Copy the secret now and give it to the receiver: it is not shown again.";
    done: "Já copiei" | "I have copied it";
});
