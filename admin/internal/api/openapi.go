package api

import "github.com/danielgtaylor/huma/v2"

//go:generate go test -run ^TestDocumentIsCheckedIn$ -update .

// APIVersion is the version of the document, apart from the server's.
const APIVersion = "1.0.0"

// description is what the document says beside operations and schemas.
func description() *huma.OpenAPI {
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Carillon", Version: APIVersion,
			Description: "Jobs, runs and executors. Errors are application/problem+json with a stable code; ids are strings; instants are RFC 3339 UTC with milliseconds; lists are paged by cursor.",
			License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		// Whoever reads it has it from the server that it speaks of.
		Servers: []*huma.Server{{URL: "/", Description: "The server that this document comes from"}},
		Components: &huma.Components{
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"bearer":        {Type: "http", Scheme: "bearer", Description: "An access token from POST /api/v1/auth/login, or an API key (ck_…)."},
				"refreshCookie": {Type: "apiKey", In: "cookie", Name: refreshCookie, Description: "Set by login, exchanged by refresh; scripts in pages cannot read it."},
			},
		},
		Tags: []*huma.Tag{
			{Name: "session", Description: "Log in, and who am I"}, {Name: "jobs", Description: "Definitions and schedules"},
			{Name: "runs", Description: "What ran, runs and will run"}, {Name: "executors", Description: "Applications and their processes"},
			{Name: "calls", Description: "Handlers, called by programs"}, {Name: "calendars", Description: "Days and windows without fires"},
			{Name: "scripts", Description: "What agents run"}, {Name: "access", Description: "Users, API keys, join tokens"}, {Name: "system", Description: "The tenant and the cluster at a glance"},
			{Name: "platform", Description: "All tenants"},
		},
	}
}
