//! Steps of the machine, each as a whole or not at all.

use async_trait::async_trait;

use super::Memory;
use crate::error::Result;
use crate::machine::Step;
use crate::store::Steps;

#[async_trait]
impl Steps for Memory {
    async fn apply(&self, steps: Vec<Step>) -> Result<Vec<bool>> {
        self.thawed().await;
        let mut tables = self.tables();
        Ok(steps.into_iter().map(|step| tables.apply(step, &self.clock)).collect())
    }
}
