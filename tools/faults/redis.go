package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/internal/testenv"
)

// askRedis sends one command on a connection of its own, past any proxy, and returns
// the answer: a text, a word or a number.
func askRedis(ctx context.Context, server *testenv.Broker, command string) (string, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", server.Addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(conn, "AUTH %s\r\n%s\r\n", server.Password, command); err != nil {
		return "", err
	}
	answers := bufio.NewReader(conn)
	var line string
	for range 2 { // that of AUTH first
		if line, err = answers.ReadString('\n'); err != nil {
			return "", err
		}
		if line[0] == '-' {
			return "", fmt.Errorf("redis says %q", line)
		}
	}
	kind, line := line[0], strings.TrimSpace(line[1:])
	if kind != '$' {
		return line, nil
	}
	length, err := strconv.Atoi(line)
	if err != nil || length < 0 {
		return "", err
	}
	text := make([]byte, length)
	_, err = io.ReadFull(answers, text)
	return string(text), err
}
