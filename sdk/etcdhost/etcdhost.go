package etcdhost

import (
	_ "embed" // the script
	"encoding/json"
	"strconv"
	"strings"
	"time"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// Timeout is how long the script may take. Repeating it earlier is harmless: it says so until the first has ended.
const Timeout = 8 * time.Minute

// OutputLimit is how much the script prints at most, in bytes.
const OutputLimit = 64 << 10

// body is the script without its variables.
//
//go:embed etcd.sh
var body string

// Script returns the script for a command. Its UID is what EtcdCommandOf allows.
func Script(c fleetv1.EtcdCommand) string {
	return "action='" + string(c.Command) + "'\nuid='" + c.UID + "'\n" + body
}

// printed is what the script prints: its own error, or what etcd's gateway for JSON responds. Numbers of 64 bits are strings there.
type printed struct {
	Error  string `json:"error"`
	Status struct {
		Header struct {
			ClusterID uint64 `json:"cluster_id,string"`
			MemberID  uint64 `json:"member_id,string"`
			Revision  int64  `json:"revision,string"`
		} `json:"header"`
		Version   string `json:"version"`
		Leader    uint64 `json:"leader,string"`
		RaftIndex int64  `json:"raftIndex,string"`
		RaftTerm  int64  `json:"raftTerm,string"`
	} `json:"status"`
	Members struct {
		Members []struct {
			ID        uint64 `json:"ID,string"`
			IsLearner bool   `json:"isLearner"`
		} `json:"members"`
	} `json:"members"`
}

// Answer returns the answer to a command, given what the script has printed. The machine may be hostile: nothing of it is repeated but
// numbers, and the errors of the script.
func Answer(c fleetv1.EtcdCommand, output string) fleetv1.EtcdAnswer {
	answer := fleetv1.EtcdAnswer{UID: c.UID, Command: c.Command}
	lines := strings.Split(strings.TrimSpace(output), "\n")
	p := printed{}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &p); err != nil || p.Error == "" && p.Status.Header.MemberID == 0 {
		answer.Error = "the machine has answered nothing that can be understood"
		return answer
	}
	if p.Error != "" {
		answer.Error = printable(p.Error)
		return answer
	}
	s := p.Status
	answer.Member = &fleetv1.EtcdMemberState{
		ID: hexadecimal(s.Header.MemberID), ClusterID: hexadecimal(s.Header.ClusterID), Version: printable(s.Version),
		RaftIndex: s.RaftIndex, RaftTerm: s.RaftTerm, Revision: s.Header.Revision,
	}
	if s.Leader != 0 {
		answer.Member.Leader = hexadecimal(s.Leader)
	}
	for _, m := range p.Members.Members {
		if !m.IsLearner && len(answer.Member.Members) < maxMembers {
			answer.Member.Members = append(answer.Member.Members, hexadecimal(m.ID))
		}
	}
	return answer
}

const (
	// maxMembers is how many members an answer has at most, and maxText how long a text is.
	maxMembers, maxText = 32, 200
)

func hexadecimal(id uint64) string { return strconv.FormatUint(id, 16) }

// printable returns text without control characters, of a limited length.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, text)
	return text[:min(len(text), maxText)]
}
