//! The codes of the API in the visitor's language. In English each says so itself.

use super::Language;
use crate::problem::Code;

/// What happened, and what to do.
pub(crate) fn problem(code: Code, language: Language) -> (&'static str, &'static str) {
    match language {
        Language::English => (code.title(), code.advice()),
        Language::Portuguese => portuguese(code),
    }
}

#[expect(clippy::too_many_lines, reason = "a line for each code")]
fn portuguese(code: Code) -> (&'static str, &'static str) {
    match code {
        Code::BadId => ("O id no caminho não é um id", "Ids são UUIDs, como as respostas os dão."),
        Code::BadQuery => (
            "Um parâmetro do endereço está errado",
            "O detalhe diz qual. Horários seguem a RFC 3339; escreva + como %2B.",
        ),
        Code::BadHeader => {
            ("Um cabeçalho do pedido está errado", "O detalhe diz qual e como deveria ser.")
        }
        Code::RequestUnderWay => (
            "Um pedido com esta chave ainda está em andamento",
            "Repita daqui a pouco: a resposta será a do primeiro.",
        ),
        Code::MalformedJson => ("O corpo não é JSON", "Veja a linha e a coluna."),
        Code::Unauthenticated => (
            "Não se sabe quem chama",
            "Envie uma chave válida: Authorization: Bearer lavra_…, ou entre em /ui/login. lavra key create cria uma.",
        ),
        Code::RoleNeeded => (
            "O papel da chave não inclui isto",
            "needed é o papel que inclui; lavra key create NOME --role PAPEL cria uma chave assim.",
        ),
        Code::Csrf => (
            "O pedido não traz o código da página",
            "Carregue a página de novo e repita. Um script envia X-CSRF-Token; um programa usa uma chave em vez do cookie.",
        ),
        Code::ForeignOrigin => (
            "Esta página não pode mudar nada aqui",
            "Pedidos de páginas de outros sites são recusados. Se a página é sua, acrescente o nome a web.hosts em lavra.toml.",
        ),
        Code::NotAllowed => (
            "Isto é só para quem opera o servidor",
            "Use lavra sql na mesma máquina, com o mesmo usuário.",
        ),
        Code::NoSuchRoute => ("Não há nada neste caminho", "Os caminhos estão em /openapi.json."),
        Code::TaskNotFound => {
            ("Não há tal tarefa", "Nunca houve, ou terminou há muito tempo e foi limpa.")
        }
        Code::ResultNotFound => {
            ("A tarefa não tem resultado", "Ainda não terminou, ou terminou sem um.")
        }
        Code::DeadLetterNotFound => ("Não há tal carta morta", "Foi reenviada ou removida."),
        Code::ScheduleNotFound => ("Não há tal agendamento", "GET /schedules lista todos."),
        Code::SourceNotFound => (
            "Nada desta fonte foi extraído aqui",
            "Extraia primeiro: lavra extract run FONTE --from MÊS --to MÊS.",
        ),
        Code::ExtractionNotFound => {
            ("O plano da fonte não tem esta tarefa", "GET /extractions/{source} lista todas.")
        }
        Code::KeyNotFound => ("Não há tal chave", "GET /keys e lavra key list têm os ids."),
        Code::FleetNotFound => (
            "Não há tal missão, worker, proxy ou writer",
            "GET /missions e GET /fleet/workers, /fleet/proxies e /fleet/writers os listam.",
        ),
        Code::WebhookNotFound => ("Não há tal webhook", "GET /webhooks lista todos."),
        Code::WebhookConflict => {
            ("Outro webhook tem este nome", "Escolha outro nome, ou mude o que o tem.")
        }
        Code::FleetConflict => {
            ("Do jeito que está, isto não pode ser feito", "O detalhe diz o que impede.")
        }
        Code::MethodNotAllowed => {
            ("Este caminho não tem este método", "O cabeçalho Allow diz quais tem.")
        }
        Code::IllegalTransition => {
            ("O estado da tarefa não permite isto", "task_status diz o estado em que ela está.")
        }
        Code::TaskLost => (
            "A tarefa não é mais deste worker",
            "Pare de trabalhar nela: foi cancelada, assumida por outro ou terminou. Nada mais precisa ser dito.",
        ),
        Code::VersionMismatch => (
            "A tarefa mudou desde que foi lida",
            "Leia e decida de novo; actual é a versão dela agora.",
        ),
        Code::BodyTooLarge => (
            "O corpo é grande demais",
            "Ponha o que é grande em um arquivo ou bucket e o endereço no payload; divida lotes.",
        ),
        Code::UnsupportedMediaType => (
            "O corpo tem o tipo errado",
            "Envie JSON com Content-Type: application/json; formulários de páginas são application/x-www-form-urlencoded.",
        ),
        Code::WrongHost => (
            "Este servidor não atende por este nome",
            "Use localhost, 127.0.0.1 ou ::1, ou acrescente o nome a web.hosts em lavra.toml.",
        ),
        Code::InvalidRequest => (
            "O pedido não pode ser atendido como está",
            "O detalhe diz o que está errado em qual campo.",
        ),
        Code::UnknownTaskType => (
            "Ninguém aqui conhece este tipo de tarefa",
            "GET /types lista os conhecidos. O primeiro pedido de um worker torna um tipo conhecido, ou [tasks.types] em lavra.toml.",
        ),
        Code::IdempotencyKeyReused => (
            "A Idempotency-Key pertence a outro pedido",
            "Use uma chave nova para um pedido novo; repita um pedido com o mesmo corpo.",
        ),
        Code::TooManyAttempts => {
            ("Chaves erradas demais vieram dali", "Espere o Retry-After, e use uma chave válida.")
        }
        Code::InternalError => {
            ("Algo está errado no Lavra", "O log do servidor diz mais. Por favor, relate.")
        }
        Code::DatabaseError => (
            "O banco de dados recusou",
            "O log do servidor diz mais. Com 503 passa: tente de novo.",
        ),
        Code::DatabaseHeld => {
            ("Outro processo está com o banco de dados", "Use o endereço daquele processo.")
        }
        Code::DatabaseNewer => (
            "O banco de dados foi escrito por uma versão mais nova",
            "Rode aquela versão, ou use outro banco.",
        ),
        Code::BadConfiguration => ("A configuração do servidor está errada", "O detalhe diz onde."),
        Code::SecretUnreadable => (
            "Um segredo guardado não pode ser lido",
            "A chave no ambiente do servidor não é aquela com que foi escrito.",
        ),
        Code::TooManyListeners => (
            "Páginas demais acompanham este servidor",
            "Feche algumas; as que estão abertas se atualizam mesmo assim.",
        ),
        Code::Timeout => (
            "Demorou demais",
            "Veja se foi feito e tente de novo; com uma Idempotency-Key nem é preciso ver.",
        ),
        Code::DatabaseUnreachable => {
            ("O banco de dados não responde", "Tente de novo após o Retry-After.")
        }
        Code::DiskFull => (
            "O disco está cheio",
            "Abra espaço onde fica o banco de dados; a gravação segue sozinha.",
        ),
        Code::ArtefactError => {
            ("O lugar dos artefatos não responde", "Tente de novo após o Retry-After.")
        }
    }
}
