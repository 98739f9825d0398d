//! API keys.

use super::texts;

texts!(Keys {
    title: "Chaves de API" | "API keys";
    says: "Uma chave diz quem chama e o que pode fazer. Pessoas entram com ela nas páginas; programas a enviam em cada pedido."
        | "A key says who calls and what they may do. People sign in to the pages with it; programs send it with each request.";
    make: "Criar chave" | "Make a key";
    name_hint: "de quem é" | "whose it is";
    role: "Papel" | "Role";
    role_viewer: "viewer: só vê" | "viewer: only looks";
    role_operator: "operator: também opera" | "operator: also operates";
    role_admin: "admin: também administra" | "admin: also administers";
    role_writer: "writer: só programas" | "writer: programs only";
    one: "Chave de API" | "API key";
    life: "Validade" | "Lasts";
    life_none: "até ser revogada" | "until it is revoked";
    life_30: "30 dias" | "30 days";
    life_90: "90 dias" | "90 days";
    life_365: "1 ano" | "1 year";
    valid: "Válida" | "Valid";
    expired: "Expirada" | "Expired";
    revoked: "Revogada" | "Revoked";
    yours: "a sua" | "yours";
    last_used: "Último uso" | "Last used";
    expires: "Expira" | "Expires";
    made_at: "Criada" | "Made";
    revoke: "Revogar" | "Revoke";
    confirm_revoke: "Revogar. Quem a usa perde o acesso agora, e as sessões abertas com ela terminam; isto não se desfaz."
        | "Revoke it. Whoever uses it loses access now, and sessions opened with it end; this cannot be undone.";
    confirm_revoke_last: "É a única chave de admin válida. Sem ela só quem está na própria máquina administra, e o servidor não inicia além dela."
        | "It is the only admin key that is valid. Without it only those on the machine itself administer, and the server does not start beyond it.";
    did_revoke: "Revogada:" | "Revoked:";
    empty: "Nenhuma chave ainda." | "No key yet.";
    empty_next: "Nesta máquina ninguém precisa de uma. Para entrar de outra, crie uma chave de admin e inicie o servidor com --listen."
        | "On this machine nobody needs one. To sign in from another one, make an admin key and start the server with --listen.";
    made_heading: "Chave criada" | "The key was made";
    made_says: "Copie agora: ela não será mostrada de novo. Só uma soma dela fica guardada." | "Copy it now: it is not shown again. Only a hash of it is stored.";
    done: "Já copiei" | "I have copied it";
    not_made: "Não foi criada:" | "It was not made:";
    wrong_name: "o nome tem de 1 a 100 letras em uma linha" | "a name has 1 to 100 letters in one line";
    wrong_role: "escolha um papel" | "choose a role";
});
