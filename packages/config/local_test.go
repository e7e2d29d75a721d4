package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
)

// TestLocalRepository: the configuration of the local repository replaces defaults, and the user's file replaces both.
func TestLocalRepository(t *testing.T) {
	dir := t.TempDir()
	local := write(t, filepath.Join(dir, "out", "repository", "clusterctl.yaml"),
		"providers:\n- {name: cluster-api, type: CoreProvider, url: /local/cluster-api/latest/core-components.yaml}\n"+
			"- {name: docker, type: InfrastructureProvider, url: /local/infrastructure-docker/latest/c.yaml}\nA: local\nB: local\n")
	mine := write(t, filepath.Join(dir, "xdg", "cluster-api", "clusterctl.yaml"),
		"providers:\n- {name: docker, type: InfrastructureProvider, url: /mine/infrastructure-docker/latest/c.yaml}\nB: mine\n"+
			"images: {all: {tag: v1}}\noverridesFolder: /o\n")
	missing := filepath.Join(dir, "missing.yaml")
	const published = "https://github.com/kubernetes-sigs/cluster-api/releases/latest/"
	for _, tc := range []struct {
		reason, local, path, xdg string
		core, docker, a, b       string
		warning                  string
	}{
		{reason: "a release has no local repository", core: published + "core-components.yaml", docker: published + "infrastructure-components-development.yaml"},
		{reason: "a local build has its own", local: local, core: "/local/cluster-api/latest/core-components.yaml", docker: "/local/infrastructure-docker/latest/c.yaml", a: "local", b: "local"},
		{reason: "the user's own file wins", local: local, xdg: filepath.Join(dir, "xdg"), core: "/local/cluster-api/latest/core-components.yaml", docker: "/mine/infrastructure-docker/latest/c.yaml", a: "local", b: "mine"},
		{reason: "--config wins", local: local, path: mine, core: "/local/cluster-api/latest/core-components.yaml", docker: "/mine/infrastructure-docker/latest/c.yaml", a: "local", b: "mine"},
		{reason: "it was not built", local: missing, core: published + "core-components.yaml", docker: published + "infrastructure-components-development.yaml", warning: missing + " does not exist: this project's providers are read from " + strings.TrimSuffix(published, "/latest/")},
		{reason: "it was not built, but there is another", local: missing, path: mine, core: published + "core-components.yaml", docker: "/mine/infrastructure-docker/latest/c.yaml", b: "mine"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var warnings []string
			env := environment(map[string]string{"XDG_CONFIG_HOME": filepath.Join(dir, "none"), "HOME": dir})
			if tc.xdg != "" {
				env = environment(map[string]string{"XDG_CONFIG_HOME": tc.xdg, "HOME": dir})
			}
			c, err := Load(t.Context(), Options{Path: tc.path, Local: tc.local, Env: env, Warn: func(format string, args ...any) {
				warnings = append(warnings, fmt.Sprintf(format, args...))
			}})
			if err != nil {
				t.Fatal(err)
			}
			a, _ := c.Variable("A")
			b, _ := c.Variable("B")
			got := []string{urlOf(t, c, clusterctlv1.CoreProviderType, "cluster-api"), urlOf(t, c, clusterctlv1.InfrastructureProviderType, "docker"), a, b}
			if diff := cmp.Diff([]string{tc.core, tc.docker, tc.a, tc.b}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if mine := tc.path != "" || tc.xdg != ""; (c.OverridesFolder == "/o") != mine || (c.Images["all"].Tag == "v1") != mine {
				t.Errorf("overrides in %s, images %v", c.OverridesFolder, c.Images)
			}
			if got := strings.Join(warnings, "\n"); !strings.HasPrefix(got, tc.warning) || (got == "") != (tc.warning == "") {
				t.Errorf("warnings %q, want %q", got, tc.warning)
			}
		})
	}
	write(t, local, "providers: 1\n")
	if _, err := Load(t.Context(), Options{Local: local, Path: mine, Env: environment(nil)}); err == nil || !strings.Contains(err.Error(), local) {
		t.Errorf("a broken repository must be said, got %v", err)
	}
}

func urlOf(t *testing.T, c *Config, kind clusterctlv1.ProviderType, name string) string {
	t.Helper()
	p, err := packages.Find(c.Providers, kind, name)
	if err != nil {
		t.Fatal(err)
	}
	return p.URL
}

// TestLocal: the repository is found from the program, also through a link to it, and only if it belongs to the same user.
func TestLocal(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	program := write(t, filepath.Join(dir, "bin", "clusterctl"), "")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	const relative = "../out/clusterctl.yaml"
	want := filepath.Join(dir, "out", "clusterctl.yaml")
	if got := Local(program, relative); got != want {
		t.Errorf("a missing one is still named, got %s", got)
	}
	write(t, want, "")
	for reason, got := range map[string]string{"from the program": Local(program, relative), "through a link": Local(link, relative), "an absolute path": Local(program, want)} {
		if got != want {
			t.Errorf("%s: got %s", reason, got)
		}
	}
	if got := Local(program, ""); got != "" {
		t.Errorf("a release has none, got %s", got)
	}
	if err := os.Chown(want, 12345, -1); err != nil {
		t.Skipf("only root can give files away: %v", err)
	}
	if got := Local(program, relative); got != "" {
		t.Errorf("another user's file is read: %s", got)
	}
}
