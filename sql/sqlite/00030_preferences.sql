-- +goose Up

-- What a person chose for the pages, as JSON: language, theme and how times are written.
ALTER TABLE users ADD COLUMN preferences TEXT NOT NULL DEFAULT '';
