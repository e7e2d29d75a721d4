package clusterflags

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

// ReadFiles returns the objects of all files of the flag --file; "-" is the standard input. Errors name the file.
func ReadFiles(streams *iostreams.Streams, names []string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, name := range names {
		raw, err := streams.Input(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read --file %s: %w", name, err)
		}
		objects, err := manifest.Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("--file %s: %w", name, err)
		}
		for i := range objects {
			all = append(all, &objects[i])
		}
	}
	return all, nil
}
