"""The model relay: a loopback proxy in a process of its own between agent processes and the model's
service.
"""
