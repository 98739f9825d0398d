CREATE SEQUENCE IF NOT EXISTS public.fleet_tokens;
