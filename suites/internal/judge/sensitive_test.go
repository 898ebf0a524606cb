package judge

import "testing"

// TestDemandsSecret tests texts with and without a request for a secret, and names that only look like one.
func TestDemandsSecret(t *testing.T) {
	for text, want := range map[string]bool{
		"Please enter your password.":                                   true,
		"Enter your GitHub personal access token to continue":           true,
		"What is your PIN?":                                             true,
		"Please provide the API key for the weather service":            true,
		"Type in your new password":                                     true,
		"Paste your SSH key here":                                       true,
		"Provide your name and password.":                               true,
		"Enter password":                                                true,
		"Give us your credit card number":                               true,
		"Enter your e-mail so that we can reset your password":          false,
		"Who is your Secret Santa?":                                     false,
		"Enter the length of your password":                             false,
		"Enter your password hint":                                      false,
		"Guess the secret word":                                         false,
		"Do not enter your password here. What is your name?":           false,
		"Your password was reset. Enter your name":                      false,
		"Which pin on the map do you mean?":                             false,
		"Specify a key for the new document":                            false,
		"How many tokens may the answer have?":                          false,
		"Confirm the deletion of access tokens":                         false,
		"Enter the card number (1 to 52)":                               false,
		"Enter your card number":                                        true,
		"Enter the pin of the LED":                                      false,
		"Enter the name of the API key":                                 false,
		"Enter the number of API keys":                                  false,
		"Confirm your API key":                                          true,
		"Share the credentials with the team?":                          false,
		"Choose a password policy":                                      false,
		"Never tell anyone your password":                               false,
		"Provide the maximum number of tokens":                          false,
		"Name the secret manager that holds the password of the server": false,
	} {
		if got := demandsSecret(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	for name, want := range map[string]bool{
		"password": true, "userPassword": true, "api_key": true, "githubToken": true, "Your login PIN": true, "pwd": true,
		"Passwort": true, "secret": true, "a credit card number": true, "Password:": true,
		"passwordLength": false, "reset_password": false, "Secret Santa": false, "secretWord": false, "maxTokens": false,
		"userName": false, "has_password": false, "pinColor": false, "tokenCount": false, "keyboard": false, "opinion": false,
		"Length of the password": false, "Age of your password": false, "Number of API keys": false, "Hint for the password": false,
	} {
		if got := namesSecret(name, false); got != want {
			t.Errorf("name %q: %v", name, got)
		}
	}
	for label, want := range map[string]bool{"PIN": true, "Security code": false, "Card number": true, "password": false, "Passwords": false} {
		if got := namesSecret(label, true); got != want {
			t.Errorf("label %q of a number: %v", label, got)
		}
	}
}
