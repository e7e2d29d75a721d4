package contract

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Bootstrap is what Machine.spec.bootstrap.configRef names.
type Bootstrap struct{ Object }

// BootstrapOf is the view on u as a bootstrap configuration.
func BootstrapOf(u *unstructured.Unstructured) Bootstrap { return Bootstrap{Object{u}} }

// DataSecretName is status.dataSecretName; empty when absent.
func (b Bootstrap) DataSecretName() (string, error) {
	name, _, err := field[string](b.Object, "status", "dataSecretName")
	return name, err
}
