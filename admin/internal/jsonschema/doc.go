// Package jsonschema answers: does a JSON value fit a handler's JSON Schema?
//
// Schemas come from applications, in any language, so nothing is trusted: a
// schema that cannot be read, or a keyword that is not known here, allows
// everything; references stay inside the schema; and the work of one check is
// bounded, however the schema is knotted. What is let through in doubt is found
// by the executor, which decodes the input into its own types.
//
// Known are, of draft 2020-12: type, enum, const, properties, required,
// additionalProperties, patternProperties, propertyNames, items, prefixItems,
// minItems, maxItems, uniqueItems, minProperties, maxProperties, minLength,
// maxLength, pattern, minimum, maximum, exclusiveMinimum, exclusiveMaximum,
// multipleOf, allOf, anyOf, oneOf, not, $ref into $defs, and the formats
// date-time, date and go-duration.
package jsonschema
