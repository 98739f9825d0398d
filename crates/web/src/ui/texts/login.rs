//! The login page.

use super::texts;

texts!(Login {
    title: "Entrar" | "Sign in";
    says: "Mission Control: a página onde o Lavra é operado." | "Mission Control: the page where Lavra is run.";
    key: "Chave de API" | "API key";
    enter: "Entrar" | "Sign in";
    wrong: "A chave não foi aceita." | "The key was not accepted.";
    too_many: "Foram chaves erradas demais: espere um pouco." | "There were too many wrong keys: wait a moment.";
    for_programs: "Esta chave é para programas e não abre as páginas." | "This key is for programs and does not open the pages.";
    what: "O que é uma chave?" | "What is a key?";
    what_says: "Um texto que começa com lavra_ e diz quem você é e o que pode fazer: ver, operar ou administrar. É mostrado uma única vez, quando é criado."
        | "A text that begins with lavra_ and says who you are and what you may do: look, operate or administer. It is shown once, when it is made.";
    how: "Quem opera o servidor cria uma com:" | "Whoever runs the server makes one with:";
    how_name: "NOME" | "NAME";
});
