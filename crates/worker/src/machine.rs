//! What may become of a session. Everything that happens to one goes through [`next`].

use crate::model::SessionStatus as Status;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    ClientMade,
    ProxyReached,
    ProxyAdmitted,
    SourceAnswered,
    JobBegan,
    JobEnded,
    /// Nothing comes, or nothing that helps.
    Stalled,
    /// The proxy refused or broke off.
    Broke,
    /// Someone closed it, or nobody used it.
    Ended,
}

/// The status after an event; `None` where it cannot happen then, and changes nothing.
pub(crate) fn next(status: Status, event: Event) -> Option<Status> {
    match (status, event) {
        (Status::Terminated, _) => None,
        (_, Event::Ended) => Some(Status::Terminated),
        (Status::Stuck | Status::Disconnected, _) => None,
        (_, Event::Stalled) => Some(Status::Stuck),
        (_, Event::Broke) => Some(Status::Disconnected),
        (Status::Initializing, Event::ClientMade) => Some(Status::Connecting),
        (Status::Connecting, Event::ProxyReached) => Some(Status::Authenticating),
        (Status::Authenticating, Event::ProxyAdmitted) => Some(Status::WarmingUp),
        (Status::Ready, Event::JobBegan) => Some(Status::Scraping),
        (Status::WarmingUp, Event::SourceAnswered) | (Status::Scraping, Event::JobEnded) => {
            Some(Status::Ready)
        }
        (
            _,
            Event::ClientMade
            | Event::ProxyReached
            | Event::ProxyAdmitted
            | Event::SourceAnswered
            | Event::JobBegan
            | Event::JobEnded,
        ) => None,
    }
}

/// Whether it can still be used, or soon.
pub(crate) fn is_open(status: Status) -> bool {
    match status {
        Status::Initializing
        | Status::Connecting
        | Status::Authenticating
        | Status::WarmingUp
        | Status::Ready
        | Status::Scraping => true,
        Status::Stuck | Status::Disconnected | Status::Terminated => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: [Event; 9] = [
        Event::ClientMade,
        Event::ProxyReached,
        Event::ProxyAdmitted,
        Event::SourceAnswered,
        Event::JobBegan,
        Event::JobEnded,
        Event::Stalled,
        Event::Broke,
        Event::Ended,
    ];

    #[test]
    fn a_session_opens_step_by_step_and_scrapes_again_and_again() {
        let steps = &EVENTS[..6];
        let end = steps.iter().try_fold(Status::Initializing, |status, event| next(status, *event));
        assert_eq!(end, Some(Status::Ready));
        assert_eq!(next(Status::Ready, Event::JobBegan), Some(Status::Scraping));
        assert_eq!(next(Status::Scraping, Event::JobBegan), None, "one job at a time");
    }

    #[test]
    fn what_is_broken_can_only_end_and_what_has_ended_stays() {
        for event in EVENTS {
            assert_eq!(next(Status::Terminated, event), None);
            for broken in [Status::Stuck, Status::Disconnected] {
                let ended = (event == Event::Ended).then_some(Status::Terminated);
                assert_eq!(next(broken, event), ended);
            }
        }
    }
}
