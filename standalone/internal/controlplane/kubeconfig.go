package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"sigs.k8s.io/cluster-api/standalone/internal/certs"
	"sigs.k8s.io/cluster-api/standalone/internal/datadir"
)

// contextName names cluster, user and context in the kubeconfig that is written.
const contextName = "capi"

// CheckKubeconfig fails when the administrator's kubeconfig cannot be written to path, and when writing it would
// destroy a kubeconfig that holds anything but what an earlier run wrote there. It makes the folder if needed.
func CheckKubeconfig(path string) error {
	if err := checkWritable(filepath.Dir(path)); err != nil {
		return fmt.Errorf("the kubeconfig cannot be written to %s, choose another file with --kubeconfig: %w", path, err)
	}
	existing, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s exists and is not a kubeconfig: choose another file with --kubeconfig: %w", path, err)
	}
	for name := range existing.Clusters {
		if name != contextName {
			return fmt.Errorf("%s holds other clusters (%q), and would be overwritten: choose another file with --kubeconfig", path, name)
		}
	}
	return nil
}

// checkWritable makes a folder if needed, and a file in it for a moment.
func checkWritable(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	trial, err := os.CreateTemp(folder, ".capi-")
	if err != nil {
		return err
	}
	return errors.Join(trial.Close(), os.Remove(trial.Name()))
}

// writeKubeconfig writes the administrator's kubeconfig, readable for this user alone. It writes nothing when the
// file already says the same.
func writeKubeconfig(path, server string, files certs.Files) error {
	var parts [3][]byte
	for i, file := range []string{files.CACert, files.AdminCert, files.AdminKey} {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("making the kubeconfig: %w", err)
		}
		parts[i] = content
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[contextName] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: parts[0]}
	config.AuthInfos[contextName] = &clientcmdapi.AuthInfo{ClientCertificateData: parts[1], ClientKeyData: parts[2]}
	config.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName}
	config.CurrentContext = contextName
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("making the kubeconfig: %w", err)
	}
	if existing, err := os.ReadFile(path); err == nil && string(existing) == string(content) {
		return os.Chmod(path, 0o600)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the folder of the kubeconfig: %w", err)
	}
	return datadir.WriteFile(path, content, 0o600)
}
