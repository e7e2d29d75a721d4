package kubeadm

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/blang/semver/v4"
)

// The least version of etcd by which kubeadm initializes and joins machines if no image tag is set, by the minor version of Kubernetes:
// SupportedEtcdVersion in cmd/kubeadm/app/constants. Later minor versions are treated like the newest one.
const (
	// minorOfEtcd36 is the first minor version of Kubernetes with etcd 3.6: its kubeadm supports 3.5 if a tag is set.
	minorOfEtcd36 = 34
	// minorOfFlags36 is the first minor version of Kubernetes whose kubeadm starts etcd only with flags of 3.6, such as --feature-gates
	// (cmd/kubeadm/app/phases/etcd): 3.5 does not start with them.
	minorOfFlags36 = 36
)

// etcd36 is the first version of etcd that reads members from its v3 store.
func etcd36() semver.Version { return semver.Version{Major: 3, Minor: 6} }

// beforeEtcd36 is the first version of etcd that may be upgraded to 3.6. Earlier ones promote learners, as which kubeadm joins members, in
// their v2 store only, so that 3.6 takes members for learners, and rejects another one: "too many learner members in cluster"
// (https://etcd.io/blog/2025/upgrade_from_3.5_to_3.6_issue).
func beforeEtcd36() semver.Version { return semver.Version{Major: 3, Minor: 5, Patch: 20} }

// ParseEtcd parses the version of etcd at the beginning of an image tag, or of what a member reports, without anything after the patch
// version. It reports false for other tags, such as dates.
func ParseEtcd(text string) (semver.Version, bool) {
	found := regexp.MustCompile(`^v?(3\.\d{1,4}\.\d{1,4})([^\d.].*)?$`).FindStringSubmatch(text)
	if found == nil {
		return semver.Version{}, false
	}
	v, err := semver.Parse(found[1])
	return v, err == nil
}

// EtcdOf returns the version of etcd that kubeadm of a Kubernetes version runs with an image tag. Without a tag it is the minor version by
// default, with patch version 0. It reports false if the version is unknown.
func EtcdOf(kubernetes, tag string) (semver.Version, bool) {
	if tag != "" {
		return ParseEtcd(tag)
	}
	if v, ok := parseKubernetes(kubernetes); ok && v.Minor >= minorOfEtcd36 {
		return etcd36(), true
	}
	return semver.Version{}, false // The patch version matters.
}

// DefaultEtcdTag returns the image tag of etcd that kubeadm of a Kubernetes version uses if none is set: that of the first patch version
// of a minor version. Versions that are unknown are treated like the newest one.
func DefaultEtcdTag(kubernetes string) string {
	tags := []string{ // from 1.22 on
		"3.5.0-0", "3.5.1-0", "3.5.3-0", "3.5.4-0", "3.5.6-0", "3.5.7-0", "3.5.9-0", "3.5.10-0", "3.5.12-0", "3.5.15-0", "3.5.16-0",
		"3.5.21-0", "3.6.4-0", "3.6.6-0", "3.6.8-0",
	}
	v, ok := parseKubernetes(kubernetes)
	switch i := int(v.Minor) - 22; {
	case ok && i < 0:
		return "3.4.13-0"
	case ok && i < len(tags):
		return tags[i]
	}
	return tags[len(tags)-1]
}

// parseKubernetes parses a version of Kubernetes. It reports false for what is none, or has another major version.
func parseKubernetes(version string) (semver.Version, bool) {
	v, err := semver.Parse(strings.TrimPrefix(version, "v"))
	return v, err == nil && v.Major == 1
}

// EtcdTooOld reports whether a member with one version of etcd must be upgraded to 3.5.20 or later before one with another version joins.
func EtcdTooOld(member, joining semver.Version) bool {
	return member.LT(beforeEtcd36()) && joining.GE(etcd36())
}

// HowToUpgradeEtcd is what users must do if EtcdTooOld. imageTag is the path of the image tag of etcd.
func HowToUpgradeEtcd(imageTag string) string {
	return fmt.Sprintf("set %s to a tag of 3.5 from %s on, such as 3.5.24-0, until all control plane Machines run it",
		imageTag, beforeEtcd36())
}

// EtcdStarts reports whether kubeadm of a Kubernetes version can start a version of etcd.
func EtcdStarts(kubernetes string, etcd semver.Version) bool {
	v, ok := parseKubernetes(kubernetes)
	return !ok || v.Minor < minorOfFlags36 || etcd.GE(etcd36())
}

// EtcdBehind reports whether a version of etcd is older than the one from which it can be upgraded to the default of a Kubernetes version.
func EtcdBehind(kubernetes string, etcd semver.Version) bool {
	byDefault, ok := EtcdOf(kubernetes, "")
	return ok && EtcdTooOld(etcd, byDefault)
}
