-- Which runs of the automation are being cancelled: one mark for each call that is under way.
ALTER TABLE automations ADD COLUMN cancellations json NOT NULL DEFAULT '[]';
