package standalone

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm/scheme"
	"k8s.io/kubernetes/cmd/kubeadm/app/util"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/config"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/config/strict"
)

// Where the providers keep what they are expected to write.
const (
	written  = "../providers/bootstrap-kubeadm/internal/kubeadmtypes/testdata/*-v1beta3.yaml"
	prepared = "../providers/control-plane-kubeadm/internal/workload/testdata/prepared-*.yaml"
)

// TestKubeadmReadsWhatIsWritten is in this module because only this one depends on k8s.io/kubernetes: kubeadm itself reads the
// configuration that the bootstrap provider generates, and that the control plane provider updates in clusters.
func TestKubeadmReadsWhatIsWritten(t *testing.T) {
	var files []string
	for _, pattern := range []string{written, prepared} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no configurations at %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			documents, err := util.SplitConfigDocuments(raw)
			if err != nil {
				t.Fatalf("kubeadm cannot split the documents: %v", err)
			}
			for gvk, document := range documents {
				if err := strict.VerifyUnmarshalStrict([]*runtime.Scheme{scheme.Scheme}, gvk, document); err != nil {
					t.Errorf("kubeadm would complain about fields of %s: %v", gvk, err)
				}
			}
			if err := load(file, raw); err != nil {
				t.Errorf("kubeadm rejects the configuration: %v", err)
			}
		})
	}
}

// load does what kubeadm init and kubeadm join do first: decode, default and validate.
func load(file string, raw []byte) error {
	if !strings.HasPrefix(filepath.Base(file), "join") {
		_, err := config.BytesToInitConfiguration(raw, true)
		return err
	}
	_, err := config.BytesToJoinConfiguration(raw, config.LoadOrDefaultConfigurationOptions{SkipCRIDetect: true})
	return err
}
