-- What broke a job that failed by a fault of ours: the exception's type and message, and the last frames of our code.

-- Kept as long as the payload, as the message may quote it.
ALTER TABLE jobs ADD COLUMN broke json;
