//! What each error code of a mission means: what `docs/fleet-errors.md` says, in both languages.

use lavra_fleet::code::ErrorCode;

use super::Language;

/// A code, explained.
#[derive(Debug)]
pub(crate) struct Explained {
    pub(crate) what: &'static str,
    pub(crate) blame: &'static str,
    pub(crate) lavra: &'static str,
    pub(crate) you: &'static str,
}

/// Declares what a code means: what happened, whose fault it is, what Lavra does, what you do; each in
/// Portuguese and English. A code without its texts does not compile.
macro_rules! explained {
    ($($code:ident {
        what: $what_pt:literal | $what_en:literal;
        blame: $blame_pt:literal | $blame_en:literal;
        lavra: $lavra_pt:literal | $lavra_en:literal;
        you: $you_pt:literal | $you_en:literal;
    })+) => {
        pub(crate) fn explained(code: ErrorCode, language: Language) -> Explained {
            match (code, language) {
                $((ErrorCode::$code, Language::Portuguese) => Explained {
                    what: $what_pt, blame: $blame_pt, lavra: $lavra_pt, you: $you_pt,
                },
                (ErrorCode::$code, Language::English) => Explained {
                    what: $what_en, blame: $blame_en, lavra: $lavra_en, you: $you_en,
                },)+
            }
        }
    };
}

explained! {
    Error100 {
        what: "A sessão falhou." | "The session failed.";
        blame: "De ninguém quando o worker diz terminated; senão do proxy, a menos que a resposta do worker diga de quem."
            | "Nobody's when the worker says terminated; otherwise the proxy's, unless the worker's answer says whose.";
        lavra: "Fecha a sessão, pega outro proxy e abre uma nova; a missão que a usava é raspada de novo."
            | "Closes the session, takes another proxy and opens a new one; a mission that had it is scraped again.";
        you: "Nada, a menos que aconteça muito: então veja o log do próprio worker. Um worker que encerra sessões sozinho foi reiniciado ou está sem memória."
            | "Nothing, unless it happens often: then look at the worker's own log. A worker that ends sessions by itself is restarted or out of memory.";
    }
    Error101 {
        what: "A sessão não ficou pronta dentro de timeout_session (180 s)." | "The session was not ready within timeout_session (180 s).";
        blame: "Do proxy; do worker, se ele nem aceitou o pedido." | "The proxy's; the worker's, where it never took the request.";
        lavra: "Fecha a sessão, pega outro proxy e abre uma nova." | "Closes it, takes another proxy and opens a new one.";
        you: "Veja em Auditoria, Proxies, se é sempre o mesmo proxy. Se são todos, o worker ou o site por trás dele está lento: aumente fleet.timeout_session_ms."
            | "Audit, Proxies shows whether it is always the same proxy. If it is all of them, the worker or the site behind it is slow: raise fleet.timeout_session_ms.";
    }
    Error102 {
        what: "A sessão travou." | "The session is stuck.";
        blame: "Do proxy." | "The proxy's.";
        lavra: "Fecha a sessão, pega outro proxy, abre uma nova e raspa a missão de novo."
            | "Closes it, takes another proxy, opens a new session, and scrapes the mission again.";
        you: "Como em ERROR101." | "As with ERROR101.";
    }
    Error103 {
        what: "A sessão caiu." | "The session was disconnected.";
        blame: "Do proxy." | "The proxy's.";
        lavra: "O mesmo que em ERROR102." | "The same as with ERROR102.";
        you: "Como em ERROR101." | "As with ERROR101.";
    }
    Error104 {
        what: "Nenhuma sessão após todas as tentativas." | "No session after all retries.";
        blame: "De ninguém: os erros antes dele dizem de quem foi a culpa." | "Nobody's: the errors before it say whose fault they were.";
        lavra: "Com uma missão: a missão falhou. Sem missão: o worker descansa, cada vez mais tempo, e as missões esperam."
            | "With a mission: the mission has failed. Without one: the worker rests, longer each time, and missions wait.";
        you: "Veja as entradas anteriores, na missão ou no log sem missão. Depois tente a missão de novo."
            | "Look at the entries before it, of the mission or of the log without mission. Then retry the mission.";
    }
    Error200 {
        what: "O job de extração falhou." | "The scrape job failed.";
        blame: "Do worker, a menos que a resposta dele aponte outro em blame." | "The worker's, unless its answer names someone else in blame.";
        lavra: "Envia o job de novo na sessão que está aberta, ou em uma nova." | "Sends the job again on the session that stands, or on a new one.";
        you: "Se todas as missões de certos dias falham, tente uma à mão no worker. A mensagem dele está em error_message."
            | "If all missions of some days fail, try one by hand at the worker. Its message is in error_message.";
    }
    Error201 {
        what: "O job de extração foi cancelado, e não por nós." | "The scrape job was cancelled, and not by us.";
        blame: "Do worker." | "The worker's.";
        lavra: "Envia o job de novo." | "Sends the job again.";
        you: "Outra pessoa usa o mesmo worker, ou ele foi reiniciado. Um worker pertence a uma só frota."
            | "Somebody else uses the same worker, or it was restarted. A worker belongs to one fleet.";
    }
    Error202 {
        what: "O job de extração não terminou dentro de timeout_job (100 min)." | "The scrape job was not done within timeout_job (100 min).";
        blame: "Do worker." | "The worker's.";
        lavra: "Cancela o job, espera que pare e envia de novo." | "Cancels it, waits until it has stopped, and sends it again.";
        you: "Divida a missão (uma por dia em vez de por mês), ou aumente fleet.timeout_job_ms."
            | "Cut the mission smaller (one per day instead of per month), or raise fleet.timeout_job_ms.";
    }
    Error203 {
        what: "A extração falhou após todas as tentativas." | "The scrape failed after all retries.";
        blame: "Do worker." | "The worker's.";
        lavra: "A missão falhou." | "The mission has failed.";
        you: "A causa está no log da missão. Tentar de novo começa do início." | "The cause is in the mission's log. A retry begins again.";
    }
    Error300 {
        what: "O writer falhou." | "The writer failed.";
        blame: "Do writer." | "The writer's.";
        lavra: "Envia o job mais uma vez, com outro id; uma resposta que não é resposta (401, 500) é esperada passar."
            | "Sends the job once more, under another id; an answer that is no answer (401, 500) is waited out.";
        you: "401: grave de novo a chave de API do writer. Senão, a mensagem dele está no log."
            | "401: set the API key of the writer again. Otherwise its message is in the log.";
    }
    Error301 {
        what: "O writer recusou a conexão." | "The writer refused the connection.";
        blame: "Do writer." | "The writer's.";
        lavra: "Espera e tenta de novo, sem gastar a nova tentativa." | "Waits and tries again, without spending the retry.";
        you: "Inicie o writer, ou corrija a URL dele; em Writers, Testar diz se responde."
            | "Start the writer, or correct its URL; under Writers, Test says whether it answers.";
    }
    Error302 {
        what: "O writer não respondeu a tempo, ou o job dele não avançou por 10 minutos." | "The writer did not answer in time, or its job did not move for 10 minutes.";
        blame: "Do writer." | "The writer's.";
        lavra: "Antes de o job ser aceito: espera e tenta de novo. Um job que não avança: envia mais uma vez."
            | "Before the job is accepted: waits and tries again. A job that does not move: sends it once more.";
        you: "Olhe o banco por trás do writer: locks, disco cheio." | "Look at the database behind the writer: locks, a full disk.";
    }
    Error303 {
        what: "O writer não consegue gravar estes dados como estão." | "The writer cannot store this data as it is.";
        blame: "Dos dados da missão, ou da tabela." | "The mission's data, or the table's.";
        lavra: "Nada: tentar de novo daria no mesmo." | "Nothing: trying again would end the same.";
        you: "Corrija a tabela e tente a missão de novo: só a gravação é refeita." | "Correct the table, then retry the mission: only the write is done again.";
    }
    Error304 {
        what: "O writer falhou após a nova tentativa." | "The writer failed after its retry.";
        blame: "Do writer." | "The writer's.";
        lavra: "A missão falhou; os dados continuam onde o worker os deixou." | "The mission has failed; its data is still where the worker put it.";
        you: "Tente a missão de novo: grava sem raspar outra vez." | "Retry the mission: it writes again without scraping.";
    }
    Error400 {
        what: "O armazenamento falhou." | "The storage failed.";
        blame: "Do armazenamento." | "The storage's.";
        lavra: "A missão falhou." | "The mission has failed.";
        you: "Quando o armazenamento voltar, tente a missão de novo: começa pela gravação." | "When the storage works again, retry the mission: it begins with the write.";
    }
    Error401 {
        what: "O armazenamento recusou as credenciais." | "The storage refused the credentials.";
        blame: "Da configuração do armazenamento." | "The storage's configuration.";
        lavra: "A missão falhou." | "The mission has failed.";
        you: "Corrija as credenciais do worker ou do writer e tente de novo como em ERROR400."
            | "Correct the credentials of the worker or the writer, then retry as with ERROR400.";
    }
    Error500 {
        what: "O pedido foi recusado como inválido (400, 413, 422)." | "The request was refused as wrong (400, 413, 422).";
        blame: "Da missão." | "The mission's.";
        lavra: "A missão falhou; se o worker recusou porque a sessão dele caiu, ela é raspada de novo."
            | "The mission has failed; where the worker refused because its session broke, it is scraped again instead.";
        you: "A mensagem diz do que o worker não gostou. Um worker de outra versão pode não conhecer uma mídia ou um idioma."
            | "The message says what the worker did not like. A worker of another version may not know a media type or language.";
    }
    Error501 {
        what: "Nenhum proxy livre." | "No proxy is free.";
        blame: "De ninguém." | "Nobody's.";
        lavra: "Espera; isto vai para o log uma vez, até que um tenha ficado livre." | "Waits; it is written to the log once until one was free.";
        you: "Adicione proxies, ou reative os que falharam." | "Add proxies, or reactivate those that failed.";
    }
    Error502 {
        what: "O worker não pode ser alcançado, ou responde 401, 5xx ou HTML." | "The worker cannot be reached, or answers 401, 5xx or HTML.";
        blame: "Do worker." | "The worker's.";
        lavra: "Espera por ele 5 minutos e segue o job se ele voltar; depois a missão volta à fila e o worker descansa."
            | "Waits for it for 5 minutes and follows its job on if it comes back; then the mission goes back to the queue and the worker rests.";
        you: "Em Workers, Testar diz se responde. 401: grave de novo a chave de API dele."
            | "Under Workers, Test says whether it answers. 401: set its API key again.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_and_the_document_say_the_same_of_what_happened() {
        let document = include_str!("../../../../../docs/fleet-errors.md").replace('`', "");
        for code in ErrorCode::ALL {
            let section = document.split("\n## ").find(|it| it.starts_with(code.as_str()));
            let section = section.unwrap_or_else(|| panic!("{code} is not in the document"));
            let told = explained(*code, Language::English).what;
            assert!(section.contains(told), "{code}: {told}");
        }
    }
}
