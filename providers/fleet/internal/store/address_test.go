package store

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestLocalAddresses(t *testing.T) {
	for address, refused := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true, "0.0.0.0": true, "::": true,
		"169.254.169.254": true, "fe80::1%eth0": true, "::ffff:169.254.169.254": true, "fd00:ec2::254": true, "64:ff9b::a9fe:a9fe": true,
		"224.0.0.1": true, "ff02::1": true,
		"10.0.0.1": false, "192.168.1.1": false, "fd00::1": false, "203.0.113.1": false, "2001:db8::1": false, "64:ff9b::cb00:7101": false,
	} {
		if got := local(netip.MustParseAddr(address)); got != refused {
			t.Errorf("%s: refused %v, want %v", address, got, refused)
		}
	}
}

// TestLocalStoresAreRefused: whatever the name of the endpoint is, no connection is made.
func TestLocalStoresAreRefused(t *testing.T) {
	server := newServer(t)
	options := server.options()
	options.AllowLocal = false
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		options.Endpoint = strings.Replace(server.options().Endpoint, "127.0.0.1", host, 1)
		store, err := NewS3(options)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Check(t.Context()); !errors.Is(err, ErrAddress) || !strings.Contains(err.Error(), "--allow-local-stores") {
			t.Errorf("endpoint %s: error %v", options.Endpoint, err)
		}
	}
}
