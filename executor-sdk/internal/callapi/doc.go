// Package callapi has the types of the admin's API for calls, made from its
// document: package proxy asks with them, and package executortest answers.
package callapi

//go:generate oapi-codegen -config oapi-codegen.yaml ../../../docs/openapi.json
