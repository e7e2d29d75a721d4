// Package update finds out whether a newer patch release of this program exists, without ever being in the way: it
// works while the command does, asks at most once a day, and keeps failures to itself.
//
// Providers' versions are no matter of this package.
package update

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/internal/distribution"
	"sigs.k8s.io/cluster-api/internal/distribution/repository"
)

const (
	module = "sigs.k8s.io/cluster-api"
	owner  = "kubernetes-sigs"
	name   = "cluster-api"

	stateFile = "version.yaml"
	validity  = 24 * time.Hour
)

// Checker looks for a newer release.
type Checker struct {
	// Current is the running version.
	Current string
	// Dir is the folder where the last answer is kept.
	Dir   string
	Store *repository.Store
	Now   func() time.Time
}

// state is what is kept between runs; the names of its keys are shared with other versions of the program.
type state struct {
	LastCheck     time.Time `json:"LastCheck"`
	LatestRelease release   `json:"LatestRelease"`
}

type release struct {
	URL     string `json:"URL"`
	Version string `json:"Version"`
}

// Start begins to look and returns a function that stops the search and returns what to tell the user, "" when there is
// nothing to tell. The function waits for an answer at most for patience.
func (c *Checker) Start(ctx context.Context) (result func(patience time.Duration) string) {
	ctx, cancel := context.WithCancel(ctx)
	found := make(chan release, 1)
	go func() {
		defer close(found)
		if r, err := c.latest(ctx); err == nil {
			found <- r
		}
	}()
	return func(patience time.Duration) string {
		defer cancel()
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case r := <-found:
			return c.message(r)
		case <-timer.C:
			return ""
		}
	}
}

func (c *Checker) latest(ctx context.Context) (release, error) {
	path := filepath.Join(c.Dir, stateFile)
	var kept state
	if raw, err := os.ReadFile(path); err == nil && yaml.Unmarshal(raw, &kept) == nil { //nolint:gosec // Our own file.
		if age := c.Now().Sub(kept.LastCheck); age >= 0 && age < validity && kept.LatestRelease.Version != "" {
			return kept.LatestRelease, nil
		}
	}
	r, err := c.ask(ctx)
	if err != nil {
		return release{}, err
	}
	raw, err := yaml.Marshal(state{LastCheck: c.Now().UTC(), LatestRelease: r})
	if err != nil {
		return release{}, err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err == nil {
		// Not being able to keep the answer only means asking again.
		_ = os.WriteFile(path, raw, 0o600)
	}
	return r, nil
}

func (c *Checker) ask(ctx context.Context) (release, error) {
	if versions, err := c.Store.ModuleVersions(ctx, module); err == nil && len(versions) > 0 {
		return release{Version: versions[0], URL: c.Store.ReleasePage(owner, name, versions[0])}, nil
	}
	tag, page, err := c.Store.LatestRelease(ctx, owner, name)
	return release{Version: tag, URL: page}, err
}

// message compares only within one minor version: a newer minor version is another product to its users.
func (c *Checker) message(r release) string {
	current, err := distribution.ParseVersion(c.Current)
	if err != nil || strings.HasSuffix(c.Current, "-dirty") {
		return ""
	}
	latest, err := distribution.ParseVersion(r.Version)
	if err != nil || latest.Major != current.Major || latest.Minor != current.Minor || latest.LTE(current) || builtOn(current, latest) {
		return ""
	}
	return fmt.Sprintf("New clusterctl version available: v%s -> v%s\n%s", current, latest, r.URL)
}

// described is the form `git describe` gives to builds with commits on top of a tag.
var described = regexp.MustCompile(`^(.*-)?\d+-g[0-9a-f]+$`)

// builtOn reports whether current was built from commits on top of latest. Such a version sorts before the tag it is
// newer than.
func builtOn(current, latest semver.Version) bool {
	var pre []string
	for _, p := range current.Pre {
		pre = append(pre, p.String())
	}
	base := current
	base.Pre = nil
	return described.MatchString(strings.Join(pre, ".")) && base.EQ(latest)
}
