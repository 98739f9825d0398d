//! What people do: missions, workers, proxies, writers, settings.

use jiff::civil::date;
use lavra_fleet::machine::mission::Wish;
use lavra_fleet::model::{Checkpoint, MediaType, MissionId, Mode};
use lavra_fleet::settings::{Adjustable, ProxyFailures};
use lavra_fleet::store::{
    Adjusts, Control, Edit, Filter, NewMission, NewProxy, NewWorker, NewWriter, Thing,
};
use lavra_tasks::model::TaskId;
use uuid::Uuid;

use super::{Both, Dice, WORKERS, proxy_id, worker_id, writer, writer_id};

impl Both {
    fn filter(&self, dice: &mut Dice) -> Filter {
        let ids: Vec<MissionId> = self.memory.tables().missions.keys().cloned().collect();
        match dice.roll(4) {
            0 => Filter::default(),
            1 => Filter { ids: ids.into_iter().step_by(2).collect(), ..Filter::default() },
            2 => Filter { media_type: Some(MediaType::Video), ..Filter::default() },
            _ => {
                Filter { ids: dice.pick(&ids).cloned().into_iter().collect(), ..Filter::default() }
            }
        }
    }

    pub(super) async fn wish(&self, wish: Wish, dice: &mut Dice) {
        let mut filter = self.filter(dice);
        if wish == Wish::Cancel && filter.ids.len() != 1 {
            filter.checkpoint = Some(Checkpoint::Atribuido);
        }
        self.same(|store| {
            let filter = filter.clone();
            async move { store.wish(&filter, wish, "Ação").await }
        })
        .await;
    }

    pub(super) async fn add_missions(&mut self, dice: &mut Dice) {
        let mut missions = Vec::new();
        for _ in 0..=dice.roll(4) {
            let day = 1 + dice.roll(5) as i8;
            missions.push(NewMission {
                id: MissionId(format!("mis_{:05}", self.next())),
                date_start: date(2025, 1, day),
                date_end: date(2025, 1, day + 1),
                media_type: MediaType::ALL[dice.roll(3) as usize],
                languages: vec!["pt".into(), "en".into()][dice.roll(3) as usize..].to_vec(),
            });
        }
        let again = dice.roll(3) == 0;
        self.same(|store| store.add_missions(missions.clone(), again)).await;
    }

    pub(super) async fn add_thing(&mut self, dice: &mut Dice) {
        let number = dice.roll(WORKERS);
        let is_known = {
            let known = self.memory.tables();
            [
                known.workers.contains_key(&worker_id(number)),
                known.proxies.contains_key(&proxy_id(number)),
                known.writers.contains_key(&writer_id(number)),
            ]
        };
        let name = format!("n{}", if dice.roll(5) == 0 { dice.roll(WORKERS) } else { number });
        match dice.roll(3) {
            0 if !is_known[0] => {
                let new = NewWorker {
                    id: worker_id(number),
                    name: name.clone(),
                    url: format!("http://{name}"),
                    api_key: "key".into(),
                    storage_domain: (dice.roll(6) > 0).then(|| "data.example".into()),
                    active: true,
                };
                self.same(|store| store.add_worker(new.clone())).await;
            }
            1 if !is_known[1] => {
                let new = NewProxy {
                    id: proxy_id(number),
                    name,
                    host: "proxy.example".into(),
                    port: (number > 0).then_some(3128),
                    username: None,
                    password: (number > 1).then(|| "secret".into()),
                    active: true,
                };
                self.same(|store| store.add_proxy(new.clone())).await;
            }
            _ if !is_known[2] => {
                let new = NewWriter {
                    id: writer_id(number),
                    name,
                    url: "http://writer".into(),
                    api_key: "key".into(),
                    active: dice.roll(3) > 0,
                };
                self.same(|store| store.add_writer(new.clone())).await;
            }
            _ => {}
        }
    }

    pub(super) async fn change_thing(&self, dice: &mut Dice) {
        let number = dice.roll(WORKERS + 1);
        let things = [Thing::Worker(worker_id(number)), Thing::Proxy(proxy_id(number))];
        let thing = things.into_iter().chain([writer(number)]).nth(dice.roll(3) as usize).unwrap();
        let ok = dice.roll(2) == 0;
        match dice.roll(8) {
            0 => drop(self.same(|store| store.remove(&thing)).await),
            1 => self.same(|store| store.tested(&thing, ok)).await,
            _ => {
                let edit = Edit {
                    name: (dice.roll(4) == 0).then(|| format!("n{}", dice.roll(5))),
                    url: (dice.roll(4) == 0).then(|| format!("http://n{}", dice.roll(4))),
                    storage_domain: (dice.roll(4) == 0).then(|| "other.example".into()),
                    host: (dice.roll(4) == 0).then(|| "other".into()),
                    port: (dice.roll(4) == 0).then_some(8080),
                    username: (dice.roll(4) == 0).then(|| "me".into()),
                    secret: (dice.roll(4) == 0).then(|| "new".into()),
                    active: (dice.roll(2) == 0).then_some(dice.roll(5) > 0),
                };
                self.same(|store| store.edit(&thing, edit.clone())).await;
            }
        }
    }

    pub(super) async fn order(&mut self, dice: &mut Dice) {
        if dice.roll(3) == 0 {
            let proxy_failures = [ProxyFailures::Total, ProxyFailures::Consecutive];
            let adjustable = Adjustable {
                session_limit: 1 + dice.roll(3) as i32,
                max_retries: dice.roll(3) as i32,
                proxy_failures: proxy_failures[dice.roll(2) as usize],
            };
            self.settings.adjustable = adjustable;
            self.same(|store| store.set_settings(adjustable)).await;
        } else {
            let mode = if dice.roll(2) == 0 { Mode::Run } else { *dice.pick(Mode::ALL).unwrap() };
            let task_id = (dice.roll(2) == 0).then_some(TaskId(Uuid::from_u128(7)));
            self.say(Control { mode, task_id }).await;
        }
    }

    /// What an operator does now and then.
    pub(super) async fn set_right(&self) {
        let edit = Edit { active: Some(true), ..Edit::default() };
        for number in 0..WORKERS {
            for thing in
                [Thing::Worker(worker_id(number)), Thing::Proxy(proxy_id(number)), writer(number)]
            {
                self.same(|store| store.edit(&thing, edit.clone())).await;
            }
        }
        let control = Control { mode: Mode::Run, task_id: None };
        self.say(control).await;
    }

    async fn say(&self, control: Control) {
        let seen = self.same(Adjusts::control).await.task_id;
        assert!(self.same(|store| store.set_control(control, seen)).await);
    }
}
