-- `trigger` says what the next attempt comes of, and recording an attempt sets it back to `automatic`: a resend may also
-- bring a retry forward. It used to stay `resend`, which only counted for the first attempt of a schedule.
UPDATE deliveries SET trigger = 'automatic' WHERE trigger = 'resend' AND tries > 0 AND status IN ('pending', 'held');
