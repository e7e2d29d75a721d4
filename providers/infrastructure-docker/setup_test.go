package docker

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestFlags(t *testing.T) {
	f, set := &flags{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	f.register(set)
	for name, want := range map[string]string{
		"concurrency": "10", "clustercachetracker-concurrency": "10", "api-server-ports": ports, "data-dir": "",
	} {
		if flag := set.Lookup(name); flag == nil || flag.DefValue != want {
			t.Errorf("--%s is %+v, want a default of %s", name, flag, want)
		}
	}
	if err := f.validate(); err != nil {
		t.Error(err)
	}
	if err := set.Set("api-server-ports", "none"); err != nil {
		t.Fatal(err)
	}
	if err := f.validate(); err == nil || !strings.Contains(err.Error(), "--api-server-ports") {
		t.Errorf("no ports: %v", err)
	}
	f.concurrency = 0
	if err := f.validate(); err == nil || !strings.Contains(err.Error(), "--concurrency") {
		t.Errorf("no concurrency: %v", err)
	}
}

func TestComponent(t *testing.T) {
	c := NewComponent()
	if c.Name != "capd-manager" || c.Namespace != "capd-system" || c.LeaderElectionID != "controller-leader-election-capd" {
		t.Errorf("%+v", c)
	}
}
