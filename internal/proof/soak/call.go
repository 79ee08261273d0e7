package main

import (
	"fmt"
	"net/http"
	"os"
)

// callArg makes this program the process of an exec job: it calls the app, and tells it what it was told.
const callArg = "call"

func call(url string) error {
	req, err := http.NewRequest(http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	for header, env := range map[string]string{
		"Solotick-Job": "SOLOTICK_JOB", "Solotick-Tick": "SOLOTICK_TICK", "Solotick-Run": "SOLOTICK_RUN", "Solotick-Kind": "SOLOTICK_KIND",
		"Solotick-Fencing-Token": "SOLOTICK_FENCING_TOKEN", "Solotick-Replica": "SOLOTICK_REPLICA",
	} {
		req.Header.Set(header, os.Getenv(env))
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("calling the app: %s", answer.Status)
	}
	return nil
}
