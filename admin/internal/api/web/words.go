package web

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/danielgtaylor/huma/v2/validation"
)

// The messages of huma's checks are variables. Authors of files read these messages, and need no JSON schema for them.
func init() {
	validation.MsgUnexpectedProperty = "there is no such field"
	validation.MsgExpectedRequiredProperty = "the field %s is missing"
	validation.MsgExpectedBoolean = "must be true or false"
	validation.MsgExpectedNumber = "must be a number"
	validation.MsgExpectedInteger = "must be a whole number"
	validation.MsgExpectedString = "must be a text"
	validation.MsgExpectedArray = "must be a list"
	validation.MsgExpectedObject = "must be an object with fields"
	validation.MsgExpectedRFC3339DateTime = "must be an instant such as 2026-11-21T04:00:00Z"
	validation.MsgExpectedOneOf = `must be one of "%s"`
	validation.MsgExpectedMinimumNumber = "must be %v or more"
	validation.MsgExpectedExclusiveMinimumNumber = "must be more than %v"
	validation.MsgExpectedMaximumNumber = "must be %v or less"
	validation.MsgExpectedExclusiveMaximumNumber = "must be less than %v"
	validation.MsgExpectedMinLength = "must have %d or more characters"
	validation.MsgExpectedMaxLength = "must have no more than %d characters"
	validation.MsgExpectedMatchPattern = "must match the pattern %s"
	validation.MsgExpectedArrayItemsUnique = "must have no item twice"
	validation.MsgExpectedMinItems = "must have %d or more items"
	validation.MsgExpectedMaxItems = "must have no more than %d items"
	validation.MsgExpectedMinProperties = "must have %d or more fields"
	validation.MsgExpectedMaxProperties = "must have no more than %d fields"
}

// insteadOf adds to a message about the type of a value what was found. Values that answers do not
// repeat are left out.
func insteadOf(message, location string, value any) string {
	switch message {
	case validation.MsgExpectedBoolean, validation.MsgExpectedNumber, validation.MsgExpectedInteger, validation.MsgExpectedString,
		validation.MsgExpectedArray, validation.MsgExpectedObject:
	default:
		return message
	}
	switch value.(type) {
	case []any:
		return message + ", not a list"
	case map[string]any:
		return message + ", not an object"
	}
	switch v := shownValue(location, value).(type) {
	case string:
		return message + ", not the text " + strconv.Quote(v)
	case bool:
		return message + fmt.Sprintf(", not %t", v)
	case float64, json.Number, int, int64:
		return message + fmt.Sprintf(", not the number %v", v)
	}
	return message
}
