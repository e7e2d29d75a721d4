package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/docs/manual"
	"sigs.k8s.io/cluster-api/sdk/version"
)

var (
	href = regexp.MustCompile(`<a [^>]*href="([^"]*)"`)
	id   = regexp.MustCompile(` id="([^"]*)"`)
)

// TestPages follows the links of the whole site, including those of generated pages.
func TestPages(t *testing.T) {
	cmd := &cobra.Command{}
	cmd.Flags().String("repository", filepath.Join("..", ".."), "")
	generated, err := pages(cmd)
	if err != nil {
		t.Fatal(err)
	}
	site, err := manual.New(version.Info{GitVersion: "v2.0.0"}, generated...)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"clusterctl-commands.html", "capi-commands.html", "manager-flags.html", "api-cluster-v1beta1.html", "names.html", "conditions.html", "metrics.html", "messages.html"} {
		if site[name] == nil {
			t.Errorf("the site does not have %s", name)
		}
	}
	anchors := map[string]bool{}
	for name, page := range site {
		anchors[name] = true
		for _, match := range id.FindAllSubmatch(page, -1) {
			anchors[name+"#"+string(match[1])] = true
		}
	}
	for name, page := range site {
		for _, match := range href.FindAllSubmatch(page, -1) {
			to := string(match[1])
			if strings.HasPrefix(to, "#") {
				to = name + to
			}
			if !strings.HasPrefix(to, "https://") && !strings.HasPrefix(to, "http://") && !anchors[to] {
				t.Errorf("%s: %s leads nowhere", name, to)
			}
		}
	}
}
