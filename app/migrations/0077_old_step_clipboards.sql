-- Steps that were copied or cut long ago, which the scheduler forgets.

CREATE INDEX step_clipboards_age ON step_clipboards (updated_at);
