"""The probability of reaching a goal, certified from both sides."""
