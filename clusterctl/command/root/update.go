package root

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

	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/repository"
)

const (
	modulePath      = "sigs.k8s.io/cluster-api"
	repositoryOwner = "kubernetes-sigs"
	repositoryName  = "cluster-api"

	stateFile     = "version.yaml"
	checkInterval = 24 * time.Hour
)

// checker checks whether a newer patch release of this program exists, without delaying the command: it runs
// concurrently, makes requests at most once a day, and ignores failures.
type checker struct {
	// Current is the running version.
	Current string
	// Dir is the folder with the last result.
	Dir   string
	Store *repository.Store
	Now   func() time.Time
}

// versionState is kept between runs; other versions of the program share its format.
type versionState struct {
	LastCheck     time.Time   `json:"LastCheck"`
	LatestRelease seenRelease `json:"LatestRelease"`
}

type seenRelease struct {
	URL     string `json:"URL"`
	Version string `json:"Version"`
}

// Start starts the check and returns a function that stops it and returns the message for the user, "" if there is none.
// The function waits at most for timeout.
func (c *checker) Start(ctx context.Context) (result func(timeout time.Duration) string) {
	ctx, cancel := context.WithCancel(repository.Once(ctx)) // Retries would be reported.
	found := make(chan seenRelease, 1)
	go func() {
		defer close(found)
		if r, err := c.latest(ctx); err == nil {
			found <- r
		}
	}()
	return func(timeout time.Duration) string {
		defer cancel()
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		select {
		case r := <-found:
			return c.message(r)
		case <-timer.C:
			return ""
		}
	}
}

func (c *checker) latest(ctx context.Context) (seenRelease, error) {
	path := filepath.Join(c.Dir, stateFile)
	var kept versionState
	if raw, err := os.ReadFile(path); err == nil && yaml.Unmarshal(raw, &kept) == nil { // Our own file.
		if age := c.Now().Sub(kept.LastCheck); age >= 0 && age < checkInterval && kept.LatestRelease.Version != "" {
			return kept.LatestRelease, nil
		}
	}
	r, err := c.ask(ctx)
	if err != nil {
		return seenRelease{}, err
	}
	raw, err := yaml.Marshal(versionState{LastCheck: c.Now().UTC(), LatestRelease: r})
	if err != nil {
		return seenRelease{}, err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err == nil {
		// If the result cannot be stored, the next run checks again.
		_ = os.WriteFile(path, raw, 0o600)
	}
	return r, nil
}

func (c *checker) ask(ctx context.Context) (seenRelease, error) {
	if versions, err := c.Store.ModuleVersions(ctx, modulePath); err == nil && len(versions) > 0 {
		return seenRelease{Version: versions[0], URL: c.Store.ReleasePage(repositoryOwner, repositoryName, versions[0])}, nil
	}
	tag, page, err := c.Store.LatestRelease(ctx, repositoryOwner, repositoryName)
	return seenRelease{Version: tag, URL: page}, err
}

// message only compares patch versions: upgrading to a newer minor version is a different decision.
func (c *checker) message(r seenRelease) string {
	current, err := packages.ParseVersion(c.Current)
	if err != nil || strings.HasSuffix(c.Current, "-dirty") {
		return ""
	}
	latest, err := packages.ParseVersion(r.Version)
	if err != nil || latest.Major != current.Major || latest.Minor != current.Minor || latest.LTE(current) || builtOn(current, latest) {
		return ""
	}
	return fmt.Sprintf("New clusterctl version available: v%s -> v%s\n%s", current, latest, r.URL)
}

// described matches the output of `git describe` for builds with commits on top of a tag.
var described = regexp.MustCompile(`^(.*-)?\d+-g[0-9a-f]+$`)

// builtOn reports whether current was built from commits on top of latest. Such a version sorts before latest, although
// it is newer.
func builtOn(current, latest semver.Version) bool {
	var pre []string
	for _, p := range current.Pre {
		pre = append(pre, p.String())
	}
	base := current
	base.Pre = nil
	return described.MatchString(strings.Join(pre, ".")) && base.EQ(latest)
}
