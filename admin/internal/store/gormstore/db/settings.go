package db

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// oldest is the first version of each product that has SKIP LOCKED and JSON_TABLE.
var oldest = map[string][2]int{"mysql": {8, 0}, "mariadb": {10, 6}}

// smallPacket is what max_allowed_packet should be at least: a statement of
// maxUpdateBytes can double in size by its quotes, and its last row comes on top.
const smallPacket = 4 * maxUpdateBytes

// settingFindings are of the server's version and of settings that have nothing
// to do with replication.
func settingFindings(kind, version string, set map[string]string, on func(string) bool) (out []domain.Finding) {
	add := func(code string, fatal bool, format string, args ...any) {
		out = append(out, domain.Finding{Code: code, Fatal: fatal, Message: fmt.Sprintf(format, args...)})
	}
	if major, minor, ok := versionOf(version); ok {
		if least := oldest[kind]; major < least[0] || major == least[0] && minor < least[1] {
			add("version_unsupported", true, "the server is %s %s, which lacks what claims and updates are made of (SKIP LOCKED, JSON_TABLE): "+
				"use MySQL 8.0 or MariaDB 10.6, or a newer one", kind, version)
		}
	}
	if on("log_bin") && set["binlog_format"] == "STATEMENT" {
		add("statement_binlog", true, "binlog_format is STATEMENT, with which the server refuses writes under READ COMMITTED: set it to ROW or MIXED")
	}
	if n, err := strconv.ParseInt(set["max_allowed_packet"], 10, 64); err == nil && n < smallPacket {
		add("small_packets", false, "max_allowed_packet is %d bytes: large batches of results and inputs are refused; set it to %d or more", n, smallPacket)
	}
	if v := set["innodb_doublewrite"]; v == "OFF" || v == "0" {
		add("no_doublewrite", false, "innodb_doublewrite is off: a power cut can destroy pages; set it to ON, unless the file system writes whole pages")
	}
	return out
}

// versionOf reads the numbers that a version begins with, such as
// 8.0.46-0ubuntu or 10.11.6-MariaDB. Some servers of MariaDB put 5.5.5- before it.
func versionOf(text string) (major, minor int, ok bool) {
	if strings.Contains(text, "MariaDB") {
		text = strings.TrimPrefix(text, "5.5.5-")
	}
	first, rest, _ := strings.Cut(text, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0, false
	}
	minor, err = strconv.Atoi(second)
	return major, minor, err == nil
}
