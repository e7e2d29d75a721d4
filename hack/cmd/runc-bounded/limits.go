package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/capability"
)

// limits are what a process of this machine cannot exceed.
type limits struct {
	// capabilities are the names in the bounding set, such as CAP_SYS_ADMIN.
	capabilities []string
	// oomScore is the minimum OOM score adjustment. Only CAP_SYS_RESOURCE allows a lower one.
	oomScore int64
}

// machineLimits reads the limits of this process, which those it starts inherit.
func machineLimits() (limits, error) {
	current, err := capability.NewPid2(0)
	if err != nil {
		return limits{}, fmt.Errorf("cannot read capabilities: %w", err)
	}
	if err := current.Load(); err != nil {
		return limits{}, fmt.Errorf("cannot read capabilities: %w", err)
	}
	l := limits{oomScore: -1000}
	for _, c := range capability.ListKnown() {
		if current.Get(capability.BOUNDING, c) {
			l.capabilities = append(l.capabilities, "CAP_"+strings.ToUpper(c.String()))
		}
	}
	if current.Get(capability.BOUNDING, capability.CAP_SYS_RESOURCE) {
		return l, nil
	}
	raw, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return limits{}, fmt.Errorf("cannot read the OOM score: %w", err)
	}
	l.oomScore, err = strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil {
		return limits{}, fmt.Errorf("cannot parse the OOM score: %w", err)
	}
	return l, nil
}

// applyTo lowers the request in a file to the limits. The file is only written if something changes.
func (l limits) applyTo(path string, isProcess bool) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read the request: %w", err)
	}
	lowered, err := l.lower(raw, isProcess)
	if err != nil {
		return fmt.Errorf("cannot apply the limits of this machine to %s: %w", path, err)
	}
	if bytes.Equal(raw, lowered) {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, lowered, info.Mode().Perm())
}

// lower returns a config.json or process document of the OCI runtime specification without what exceeds the limits. Fields
// that it does not know stay as they are.
func (l limits) lower(raw []byte, isProcess bool) ([]byte, error) {
	document := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // so that large numbers, such as limits of memory, keep their digits
	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}
	process := document
	if !isProcess {
		process, _ = document["process"].(map[string]any)
	}
	changed := false
	sets, _ := process["capabilities"].(map[string]any)
	for name, set := range sets {
		list, _ := set.([]any)
		kept := slices.DeleteFunc(slices.Clone(list), func(c any) bool {
			name, isString := c.(string)
			return isString && !slices.Contains(l.capabilities, name)
		})
		if len(kept) < len(list) {
			sets[name], changed = kept, true
		}
	}
	if score, isNumber := process["oomScoreAdj"].(json.Number); isNumber {
		if wanted, err := score.Int64(); err == nil && wanted < l.oomScore {
			process["oomScoreAdj"], changed = l.oomScore, true
		}
	}
	if !changed {
		return raw, nil
	}
	return json.Marshal(document)
}
