//! POST /sql.

use serde_json::json;

use crate::support::server::KIND;
use crate::support::{Place, Server, on_each_engine};

on_each_engine!(a_select_is_answered_and_nothing_else);

async fn a_select_is_answered_and_nothing_else(place: Place) {
    let server = Server::on(place).await;
    server.create(KIND, &json!({})).await;
    let before = server.written().await;
    let select = "SELECT status, count(*) AS n FROM kodus_workflow.tasks GROUP BY status";
    let answer = server.post("/sql", &json!({ "query": select })).await.expect(200);
    let expected =
        json!({"columns": ["status", "n"], "rows": [["PENDING", 1]], "truncated": false});
    assert_eq!(answer, expected);
    let many = json!({"query": "SELECT 1 AS n UNION ALL SELECT 2", "limit": 1});
    assert_eq!(server.post("/sql", &many).await.expect(200)["truncated"], true);
    for query in [
        "",
        "DELETE FROM kodus_workflow.tasks",
        "SELECT 1; DELETE FROM kodus_workflow.tasks",
        "UPDATE kodus_workflow.tasks SET state = 'x' RETURNING id",
        "SELECT * FROM nowhere",
        "SELEC 1",
    ] {
        let reply = server.post("/sql", &json!({ "query": query })).await;
        reply.problem(422, "invalid_request");
    }
    for limit in [0, 100_001] {
        let body = json!({"query": "SELECT 1", "limit": limit});
        server.post("/sql", &body).await.problem(422, "invalid_request");
    }
    assert_eq!(server.written().await, before);
}
