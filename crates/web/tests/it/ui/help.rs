//! Help, and the login page.

use lavra_fleet::code::ErrorCode;
use lavra_web::Code;

use crate::support::Server;
use crate::support::browser::Browser;

#[tokio::test]
async fn every_code_has_its_place_in_both_languages() {
    let server = Server::file().await;
    let browser = Browser::new(&server);
    for (language, word) in [("en", "Whose fault"), ("pt-BR", "De quem é a culpa")] {
        let request = browser.request(reqwest::Method::GET, "/ui/help/errors");
        let page = server.send(request.header("Accept-Language", language)).await;
        assert_eq!(page.status, 200);
        assert!(page.text.contains(word), "{language}: {}", page.text);
        let missions = ErrorCode::ALL.iter().map(|code| code.as_str());
        for code in missions.chain(Code::ALL.iter().map(|code| code.as_str())) {
            assert!(page.text.contains(&format!("id=\"{code}\"")), "{language}: {code}");
        }
    }
}

#[tokio::test]
async fn a_refusal_leads_to_what_its_code_means() {
    let server = Server::file().await;
    let mut browser = Browser::new(&server);
    let page = browser.get("/ui/workers/wrk_0").await;
    assert_eq!(page.status, 404);
    assert!(page.text.contains("href=\"/ui/help/errors#fleet_not_found\""), "{}", page.text);
    assert_eq!(browser.get("/ui/help").await.status, 200);
}

#[tokio::test]
async fn the_login_page_says_what_a_key_is_and_what_was_wrong() {
    let server = Server::file().await;
    let mut browser = Browser::new(&server);
    let page = browser.get("/ui/login?next=%2Fui%2Fworkers").await;
    for text in ["lavra key create", "name=\"next\" value=\"/ui/workers\"", "type=\"password\""] {
        assert!(page.text.contains(text), "{text}: {}", page.text);
    }
    let wrong = browser.log_in("lavra_wrong").await;
    assert_eq!(wrong.status, 401);
    for text in ["role=\"alert\"", "The key was not accepted", "aria-invalid"] {
        assert!(wrong.text.contains(text), "{text}: {}", wrong.text);
    }
    assert!(!wrong.text.contains("lavra_wrong"), "what was typed is not shown");
}
