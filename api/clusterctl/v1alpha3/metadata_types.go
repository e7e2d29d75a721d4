package v1alpha3

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:storageversion

// Metadata is the file metadata.yaml of a provider's releases: the contract of each release series.
type Metadata struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// releaseSeries has one entry per release series.
	// +optional
	ReleaseSeries []ReleaseSeries `json:"releaseSeries,omitempty"`
}

// ReleaseSeries is all releases of one minor version.
type ReleaseSeries struct {
	// major is the major version.
	// +optional
	Major uint `json:"major,omitempty"`

	// minor is the minor version.
	// +optional
	Minor uint `json:"minor,omitempty"`

	// contract is the Cluster API contract of the series, such as v1beta1.
	// +optional
	Contract string `json:"contract,omitempty"`
}

// GetReleaseSeriesForVersion returns the series of a version, or nil if it is not in the metadata.
func (m *Metadata) GetReleaseSeriesForVersion(major, minor uint64) *ReleaseSeries {
	for i := range m.ReleaseSeries {
		if s := &m.ReleaseSeries[i]; uint64(s.Major) == major && uint64(s.Minor) == minor {
			return s
		}
	}
	return nil
}

// GetReleaseSeriesForContract returns the latest series with a contract, or nil if there is none.
func (m *Metadata) GetReleaseSeriesForContract(contract string) *ReleaseSeries {
	var newest *ReleaseSeries
	for i := range m.ReleaseSeries {
		s := &m.ReleaseSeries[i]
		if s.Contract != contract {
			continue
		}
		if newest == nil || s.Major > newest.Major || (s.Major == newest.Major && s.Minor > newest.Minor) {
			newest = s
		}
	}
	return newest
}
