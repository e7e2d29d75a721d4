package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// requests are API requests of one program, from an audit log: without Leases, and without watches, which are connections.
type requests struct {
	reads, writes int
	// of counts them by verb and resource.
	of map[string]int
}

// auditEvent has the fields of an entry of the audit log that matter here.
type auditEvent struct {
	Stage, Verb, UserAgent, RequestURI string
	ObjectRef                          *struct{ Resource, Subresource string }
}

// readRequests counts what programs whose user agent begins with a prefix have requested.
func readRequests(log, userAgent string) (requests, error) {
	n := requests{of: map[string]int{}}
	file, err := os.Open(log)
	if err != nil {
		return n, err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return n, nil // What follows the last end of a line is being written.
		}
		if err != nil {
			return n, fmt.Errorf("reading the audit log: %w", err)
		}
		e := auditEvent{}
		if err := json.Unmarshal(line, &e); err != nil {
			return n, fmt.Errorf("%s: %w", log, err)
		}
		if strings.HasPrefix(e.UserAgent, userAgent) && e.Stage == "ResponseComplete" {
			n.add(e)
		}
	}
}

func (n *requests) add(e auditEvent) {
	what := e.RequestURI // Discovery has no object.
	if e.ObjectRef != nil {
		what = e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			what += "/" + e.ObjectRef.Subresource
		}
	}
	switch {
	case what == "leases" || e.Verb == "watch":
		return
	case e.Verb == "get" || e.Verb == "list":
		n.reads++
	default:
		n.writes++
	}
	n.of[e.Verb+" "+what]++
}

// minus returns those that were not made before.
func (n requests) minus(before requests) requests {
	d := requests{reads: n.reads - before.reads, writes: n.writes - before.writes, of: map[string]int{}}
	for what, count := range n.of {
		if count -= before.of[what]; count > 0 {
			d.of[what] = count
		}
	}
	return d
}

// print prints the most frequent ones.
func (n requests) print(out io.Writer, most int) {
	names := slices.SortedFunc(maps.Keys(n.of), func(a, b string) int { return cmp.Or(cmp.Compare(n.of[b], n.of[a]), cmp.Compare(a, b)) })
	for _, name := range names[:min(most, len(names))] {
		fmt.Fprintf(out, "%8d  %s\n", n.of[name], name)
	}
}
