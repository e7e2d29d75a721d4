package main

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

// checkVersion rejects versions that clusterctl could not install: those that are not semantic, and those whose release
// series is missing in the metadata.
func checkVersion(metadata, wanted string) error {
	v, err := version.ParseSemantic(wanted)
	if err != nil || !strings.HasPrefix(wanted, "v") {
		return fmt.Errorf("--version %q is not a semantic version with a leading v, such as v2.0.0", wanted)
	}
	raw, err := os.ReadFile(metadata)
	if err != nil {
		return err
	}
	var m struct {
		ReleaseSeries []struct {
			Major uint `json:"major"`
			Minor uint `json:"minor"`
		} `json:"releaseSeries"`
	}
	if err := yaml.Unmarshal(raw, &m); err != nil {
		return fmt.Errorf("%s: %w", metadata, err)
	}
	for _, s := range m.ReleaseSeries {
		if s.Major == v.Major() && s.Minor == v.Minor() {
			return nil
		}
	}
	return fmt.Errorf("%s has no release series %d.%d for --version %s: add it", metadata, v.Major(), v.Minor(), wanted)
}
