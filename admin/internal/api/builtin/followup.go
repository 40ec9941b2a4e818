package builtin

import (
	"encoding/json"
	"net/http"
	"strings"
)

// MessageTarget says where on its broker a message belongs.
type MessageTarget struct {
	Subject      string `json:"subject,omitempty" maxLength:"512" doc:"NATS"`
	Exchange     string `json:"exchange,omitempty" maxLength:"255" doc:"RabbitMQ; default: the default exchange, which routes to the queue that the routing key names"`
	RoutingKey   string `json:"routingKey,omitempty" maxLength:"255" doc:"RabbitMQ"`
	Topic        string `json:"topic,omitempty" maxLength:"249" doc:"Kafka"`
	PartitionKey string `json:"partitionKey,omitempty" maxLength:"4096" doc:"Kafka; default: the message's key"`
	Stream       string `json:"stream,omitempty" maxLength:"512" doc:"Redis; NATS: the stream that must have the subject, may be left out"`
	MaxLength    int64  `json:"maxLength,omitempty" minimum:"0" doc:"Redis: trim the stream to about so many entries; default: not"`
	Create       bool   `json:"create,omitempty" doc:"Redis: make the stream if it is missing; default: that is a failure"`
}

// endOfRun is the body of a callback: what the run's input has in the field input.
const (
	endOfRun    = "{{input}}"
	contentType = "application/json"
)

// callRequest is the request of a callback that calls an address.
type callRequest struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Timeout string            `json:"timeout,omitempty"`
}

// CallRequest returns the request of a callback that posts the end of a run to an address.
func CallRequest(url, timeout string, headers map[string]string) (string, error) {
	all, typed := map[string]string{}, false
	for name, value := range headers {
		all[name] = value
		typed = typed || strings.EqualFold(name, "Content-Type")
	}
	if !typed {
		all["Content-Type"] = contentType
	}
	out, err := json.Marshal(callRequest{url, http.MethodPost, all, endOfRun, timeout})
	return string(out), err
}

// ReadCallRequest reads what CallRequest wrote.
func ReadCallRequest(request string) (url, timeout string, headers map[string]string) {
	var r callRequest
	if json.Unmarshal([]byte(request), &r) != nil {
		return "", "", nil
	}
	if r.Headers["Content-Type"] == contentType {
		delete(r.Headers, "Content-Type")
	}
	return r.URL, r.Timeout, r.Headers
}

// messageRequest is the request of a callback that publishes a message.
type messageRequest struct {
	MessageTarget
	Body        string `json:"body"`
	ContentType string `json:"contentType"`
}

// MessageRequest returns the request of a callback that publishes the end of a run.
func MessageRequest(to MessageTarget) (string, error) {
	out, err := json.Marshal(messageRequest{to, endOfRun, contentType})
	return string(out), err
}

// ReadMessageRequest reads what MessageRequest wrote.
func ReadMessageRequest(request string) MessageTarget {
	var r messageRequest
	_ = json.Unmarshal([]byte(request), &r) // nothing where it is none
	return r.MessageTarget
}
