-- A provider's answer could pause a channel for any time. No pause is longer than an hour.
UPDATE channels SET paused_until = NULL WHERE paused_until > now() + interval '1 hour';
