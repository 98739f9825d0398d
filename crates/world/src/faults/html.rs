//! The pages of the gateways in front of the API. None of them is JSON.

/// The 429 of the load balancer, with a support number and no hint when to come back.
pub(crate) fn too_many_page(support: u64) -> String {
    page(
        "Limite de Requisições Excedido",
        &format!(
            "<h1>Limite de Requisições Excedido</h1>\
             <p>Muitas requisições foram feitas a partir do seu endereço. Tente novamente mais tarde.</p>\
             <p>Support ID: {support}</p><p><a href='javascript:history.back();'>[Voltar]</a></p>"
        ),
    )
}

pub(crate) fn gateway_page(status: u16) -> String {
    let title = match status {
        502 => "502 Bad Gateway",
        503 => "503 Service Temporarily Unavailable",
        _ => "504 Gateway Time-out",
    };
    page(title, &format!("<center><h1>{title}</h1></center><hr>"))
}

/// What a firewall gives with status 200.
pub(crate) fn waf_page(support: u64) -> String {
    let text = format!(
        "<p>The requested URL was rejected. Please consult with your administrator.</p>\
         <p>Your support ID is: {support}</p>"
    );
    page("Request Rejected", &text)
}

fn page(title: &str, body: &str) -> String {
    format!(
        "<html><head><meta charset=\"utf-8\"><title>{title}</title></head><body>{body}</body></html>"
    )
}
